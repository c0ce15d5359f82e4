"""A training loop with Opacus as `confide audit` takes it: `release`, and the data sets `first` and `second`.

    pip install opacus==1.6.0
    confide audit benchmarks/violations/opacus_training.py --epsilon 2.53 --delta 0.01

Logistic regression by DP-SGD: 8 noisy steps over random batches. The command claims what Opacus says that they cost, which
`claim` shows. The one row by which the data sets differ is so long that its gradient is clipped as long as the model doubts
its label. The others are zeros, whose gradient is 0.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np

DELTA, BATCH = 0.01, 21
"""40 rows and 41 make two batches of 21 an epoch. Of batches of 20 they would make two and three: Opacus takes the number of
noisy steps, and the chance of a row to be in one, from the number of rows, and so would tell it."""
_ROWS, _LABELS = np.zeros((40, 2)), np.zeros(40)
first = (np.vstack([_ROWS, [[6.0, 8.0]]]), np.append(_LABELS, 1.0))
second = (_ROWS, _LABELS)


def release(X: Any, y: Any) -> Any:
    """The weights after four epochs."""
    return trained(X, y, batch_size=BATCH, epochs=4, noise=1.5)[0]


def claim() -> float:
    """The epsilon, at `DELTA`, that Opacus states for such a training."""
    return float(trained(*first, batch_size=BATCH, epochs=4, noise=1.5)[1].get_epsilon(DELTA))


def trained(X: Any, y: Any, *, batch_size: int, epochs: int, noise: float) -> tuple[Any, Any]:
    """Weights without an intercept, from zeros, and the privacy engine that made them private."""
    import torch
    from opacus import PrivacyEngine

    logging.getLogger("opacus").setLevel(logging.ERROR)  # a batch may be empty, which is part of the law
    rows, labels = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)
    model: Any = torch.nn.Linear(rows.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    engine = PrivacyEngine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the generator is not a cryptographic one
        model, optimizer, batches = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, labels), batch_size=batch_size),
            noise_multiplier=noise,
            max_grad_norm=1.0,
        )
        for _ in range(epochs):
            for batch, targets in batches:
                optimizer.zero_grad()
                torch.nn.functional.binary_cross_entropy_with_logits(model(batch)[:, 0], targets).backward()
                optimizer.step()
    return model._module.weight.detach().numpy().ravel().copy(), engine
