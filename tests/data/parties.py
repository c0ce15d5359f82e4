"""An estimator of one party, and its part of a fit in a thread of this process."""

from __future__ import annotations

import threading

import confide
from confide.estimators.parties import take_part
from tests.data.tables import SCHEMA


def estimator(**more):
    return confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3, class_weight={"no": 1.0, "yes": 0.5}, **more)


def in_a_thread(connection, model, frame, closes=True):
    caught = []

    def work():
        try:
            take_part(connection, model, frame, frame["ill"])
        except ValueError as error:
            caught.append(str(error))
        finally:
            if closes:
                connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread, caught
