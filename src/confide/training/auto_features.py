"""How many knots, interactions and random features a model has where the user said nothing: public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeAlias, TypeGuard

from confide.errors import InputError, ParameterError, is_list, wording
from confide.expected_noise import noise_on_a_weight
from confide.features.columns import Column, NumberColumn
from confide.features.encoder import Encoder
from confide.features.fourier import RandomFeatures
from confide.features.schema import Interaction, Schema
from confide.known_words import suggestion
from confide.privacy.bundles import Bundles
from confide.privacy.mechanism import Plan
from confide.training.alpha import usual_norm, usual_norm_of_rows
from confide.training.auto_mechanism import atoms_plan
from confide.training.plan import AnyPlan, law_of, make_plan
from confide.training.settings import ScoreLoss, Settings

NUMBERS_OF_KNOTS = (12, 6, 3)
"""The numbers of knots that are tried beside straight lines, the largest first. One or two knots were worse than none or
three on most data."""
_LEAST_STRENGTH = {12: 10_000.0, 6: 150.0, 3: 100.0}
"""A number of knots is taken if there are so many rows for each unit of noise on a weight. Compared by
benchmarks/automatic_knots.py, as are the constants below."""
_STRENGTH_OF_CHEAP = {12: 10_000.0, 6: 100.0, 3: 0.0}
"""The same where the knots cost little, in a table of numbers (`is_of_numbers`)."""
_STRENGTH_OF_MIXED = _STRENGTH_OF_CHEAP | {3: 60.0}
"""The same in every other table, whose categories gain nothing by knots and pay for their noise: small tables with many
categories err less often with straight lines (benchmarks/notes/which_knots_of_small_tables.md)."""
_LEAST_OF_STRAIGHT = 0.5
"""A number of knots is not tried if straight lines have less than this share of the strength that it needs. Strength with
knots is seldom much larger than with straight lines, and a plan takes time."""
_CHEAP = 0.83
"""Knots cost little if the sum of typical rows over the noise is at least this share of that with straight lines. At 0.81,
three knots were worse than straight lines on KDD Cup 99 with all its columns at a pure epsilon of 0.05 and 0.1, and at 0.855
they were much better on Covertype."""
_LEAST_OF_NUMBERS = 55.0
"""Knots that cost little are taken if so many rows come for each unit of noise on a weight, bundles of columns included,
times the share of the columns that are numbers: the others gain nothing by knots. Adult has 47 at a pure epsilon of 0.1,
where straight lines are better, and Covertype 68 at 0.05, where curves are."""
_TYPICAL_SLOPE = 0.5
"""The slope of a typical row of a regression, as a share of the largest one. For classes it is nearly 1."""
_BESIDE = ((600.0, 6, 1.0), (75.0, 3, 1.0), (45.0, 3, 0.35))
"""Regressions have curves beside straight lines: from so many rows for each unit of noise on a weight of lines alone on, so
many knots at this scale. Where few rows lie, the ridge draws a curve alone to 0, and one beside a line to the line. At .35
it takes less of the norm of a row, and so of the noise (benchmarks/notes/which_knots_of_regressions.md)."""
_COUNTS_NEED = 2.0
"""Counts need so many times as many rows: most lie far below their bound, so typical slopes are smaller shares. Chosen on
visits and calls, confirmed on votes (benchmarks/results/automatic_knots_of_regressions.jsonl, its last 36 lines): strong
bends lose by that at few rows, by up to .3 of the deviance, and all others gain up to .03."""
_MOST_WEIGHTS = 5000
"""The largest number of weights of all curves together, as many as pairs of columns may have."""
_MOST_NEAR_NUMBERS = 13
"""Whole numbers between bounds from 0 on as near as this get no more knots than there are numbers between them. Columns
with numbers below 0 hold measurements."""


def with_knots(schema: Schema, knots: int | Mapping[str, int | tuple[float, ...]]) -> Schema:
    """The schema with these knots in the number columns that say nothing about knots."""
    by_name = {column.name: knots for column in schema.columns} if isinstance(knots, int) else knots
    columns = (replace(one, knots=by_name.get(one.name, ())) if _is_open(one) else one for one in schema.columns)
    return replace(schema, columns=tuple(columns))


def with_choices_of(schema: Schema, other: Schema, *, interactions: bool) -> Schema:
    """The schema with the knots, where it says none, and the curves, or all interactions, of another one."""
    theirs = {column.name: column for column in other.columns if column.is_number}
    columns = []
    for column in schema.columns:
        its = theirs.get(column.name)
        # Atoms that the other fit found are taken too.
        described = None if its is None else its if column.is_number and column.atoms else its.before_fit
        has_found = described is not its and described == column
        is_same = has_found or (described is not None and _is_open(column) and replace(described, knots=()) == column)
        columns.append(its if its is not None and is_same else column)
    schema = replace(schema, columns=tuple(columns))
    if interactions:
        return replace(schema, interact=other.interact, random_features=other.random_features)
    named = {name for interaction in schema.interact for name in interaction.columns if interaction.is_curve}
    more = [interaction for interaction in other.interact if interaction.is_curve and interaction.columns[0] not in named]
    return replace(schema, interact=(*schema.interact, *more))


def refuse_too_many(schema: Schema) -> None:
    """Refuse curves with more weights in all than a fit can take in reasonable time."""
    n_weights = sum(len(column.knots_with_bounds) for column in schema.columns if column.is_number)
    if n_weights > _MOST_WEIGHTS:
        raise ParameterError(wording("too many weights of curves", n_weights=n_weights, most=_MOST_WEIGHTS))


def _is_open(column: Column) -> TypeGuard[NumberColumn]:
    """Whether the number of knots of a column is still to be chosen."""
    return column.is_number and column.knots == ()


def with_chosen_knots(
    schema: Schema, settings_of: Callable[[Encoder], Settings], count: Callable[[], int] | None, *, may_bend: bool = False
) -> Schema:
    """The schema in which every number column says its knots: those that said nothing get a chosen number.

    A schema in which all columns say their knots stays as it is.

    Parameters
    ----------
    schema : the public description of the columns
    settings_of : the checked parameters of the fit, for the encoder of a schema
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    may_bend : whether curves may stand beside straight lines
    """
    if not any(map(_is_open, schema.columns)):
        return schema
    n_rows = None if count is None else count()

    def tried(number: int) -> tuple[Schema, float, float, float] | None:
        # The schema; rows for each unit of noise on a weight; the norm of the sum of typical rows over that of the noise;
        # and, with bundles of columns, rows for each unit of noise as it is, times the share of columns that are numbers.
        made = with_even_knots(schema, number)
        encoder = Encoder(made)
        settings = settings_of(encoder)
        of_margins = getattr(settings.minimised, "score_size", 1.0) is None
        is_open = isinstance(settings.minimised, ScoreLoss) and settings.mechanism == "auto"
        if of_margins and is_open and settings.score_loss.loss.constants.n_outputs == 1:
            # Numbers of knots were compared for two classes without noisy gradients.
            settings = replace(settings, mechanism="objective")
        try:
            plan = make_plan(settings, encoder.n_features + settings.n_slots, n_rows)  # features of few columns are such
        except ParameterError:
            # The plan of the chosen knots is made again, and then it says what is wrong.
            return None
        bundled = _without_bundles(plan)
        noise = noise_on_a_weight(plan) * bundled
        strength = (1.0 if of_margins else _TYPICAL_SLOPE) * plan.problem.n_rows_low / noise if noise else math.inf
        signal = strength * usual_norm_of_rows(encoder) / math.sqrt(plan.problem.n_weights)
        share = sum(column.is_number for column in schema.columns) / len(schema.columns)
        return made, strength, signal, strength * bundled * share if bundled > 1.0 else math.inf

    straight = tried(0)
    if straight is None:
        # Curves have more columns, so there is no plan for them either.
        return with_knots(schema, 0)
    lines, of_lines, signal_of_lines, _ = straight
    asked = settings_of(Encoder(lines))
    needed = _COUNTS_NEED if (of_scores := asked.minimised.of_scores) and of_scores.loss.constants.is_count else 1.0
    beside, scale = next(((k, scale) for least, k, scale in _BESIDE if of_lines >= least * needed), (0, 1.0))
    of_cheap = _STRENGTH_OF_CHEAP if is_of_numbers(schema) else _STRENGTH_OF_MIXED
    by_itself = all(interaction.is_curve or interaction.knots is not None for interaction in schema.interact)
    bends = may_bend and by_itself and not asked.has_intervals and getattr(asked.minimised, "score_size", 1.0) is not None
    for number in NUMBERS_OF_KNOTS:
        if bends and number < max(NUMBERS_OF_KNOTS):
            return _beside(schema, lines, beside, scale)
        if of_lines < _LEAST_OF_STRAIGHT * of_cheap[number] or (curves := tried(number)) is None:
            continue
        made, strength, signal, of_numbers = curves
        is_cheap = signal >= _CHEAP * signal_of_lines
        if is_cheap and of_numbers < _LEAST_OF_NUMBERS:
            continue
        if strength >= (of_cheap if is_cheap else _LEAST_STRENGTH)[number]:
            return made
    return lines


# Whether a fit looks for atoms: numbers that many rows share, which then have an effect of their own (benchmarks/atoms.py).

SLOTS = 64
"""The largest number of atoms of a column that a fit finds. Empty slots are columns of zeros, which cost time alone: with 0,
16, 64 and 256 slots Adult errs by .1295, .1307, .1302 and .1294 at (4, 1e-5)."""
ENOUGH_FOR_ATOMS = {"gaussian": 0.0028, "laplace": 0.0015}
"""Atoms are looked for if three standard deviations of the noise on their counts are at most this share of the rows: with
more noise few are found. At (.5, 1e-5) Adult errs by .1428 without and .1393 with them, where the share is .0027, and Bank
with economic indicators by .0845 and .0862, where it is .0030. Under a pure budget weights have Laplace noise, and atoms
of one column are looked for: Adult errs by .1408 without and .1431 with them at an epsilon of 1, where it is .0017, and by
.1408 and .1380 at 2, Bank with economic indicators by .0840 and .0845."""
ROWS_FOR_ATOMS = 3_500.0
"""Beside counts with Gaussian noise, weights have Gaussian noise too, and it grows with the columns that have slots. Where
weights would have Laplace noise without, because they are few, atoms are looked for in one column alone, if so many rows
come for each unit of noise on a weight (benchmarks/notes/what_do_atoms_gain.md)."""


def with_slots(encoder: Encoder, settings: Settings, count: Count | None) -> Encoder:
    """The encoder with slots for atoms, if the fit is to look for some, otherwise the encoder itself.

    They are left out where weights are not those of one fit, or where atoms and weights could not share one charge.

    Parameters
    ----------
    encoder : of the schema in which knots and interactions are chosen
    settings : the checked parameters of the fit
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    """
    minimised, budget = settings.minimised, settings.budget
    is_plain = settings.penalty is None and settings.own_penalty is None and not settings.monotone and settings.prior is None
    is_one = settings.set_aside == 0.0 and not settings.has_intervals and not settings.appends_features
    may_share = budget.is_private and settings.mechanism in ("auto", "objective", "gradient")
    if not (isinstance(minimised, ScoreLoss) and is_plain and is_one and may_share):
        return encoder
    made = Encoder(encoder.schema, encoder.of_part, SLOTS, in_one=budget.is_pure)
    # Laplace noise on each weight grows with their number, so slots must not outnumber other weights.
    are_many = minimised.score_size is not None or made.n_features > 2 * encoder.n_features
    if not made.sought or (budget.is_pure and are_many):
        return encoder
    with suppress(ParameterError):
        n_rows = None if count is None else count()
        plain = make_plan(settings, (encoder.appended or encoder).n_features, n_rows)
        made = replace(made, in_one=law_of(plain) == "laplace")
        part = atoms_plan(settings, made, n_rows)
        rows = _rows_for_noise(plain, plain.problem.row_bound.l2_norm)
        is_clear = budget.is_pure or not made.in_one or rows >= ROWS_FOR_ATOMS
        if is_clear and 3.0 * part.deviation <= ENOUGH_FOR_ATOMS[part.law] * part.query.n_rows[0]:
            return made
    return encoder


def _without_bundles(plan: Any) -> float:
    """How much larger noise for all groups of columns at once would be: numbers of knots were compared with such noise."""
    noise = getattr(plan, "noise", None)
    if noise is None or not isinstance(noise.shape, Bundles):
        return 1.0
    together = min(shape.laplace_norm(1.0) for shape in plan.problem.shapes if not isinstance(shape, Bundles))
    return float(together / noise.shape.laplace_norm(1.0))


def _beside(schema: Schema, straight: Schema, number: int, scale: float) -> Schema:
    """Straight lines, with curves beside those of the columns that say nothing about knots."""
    bent = {column.name: _sensible(column, number) for column in schema.columns if _is_open(column)}
    named = {name for interaction in schema.interact for name in interaction.columns if interaction.is_curve}
    made = [Interaction((name,), knots, scale) for name, knots in bent.items() if knots and name not in named]
    return replace(straight, interact=(*schema.interact, *made)) if made else straight


def with_even_knots(schema: Schema, number: int) -> Schema:
    """The schema in which number columns that say nothing about knots get this number, or as many as they can use."""
    return with_knots(schema, {column.name: _sensible(column, number) for column in schema.columns if _is_open(column)})


def _sensible(column: Column, number: int) -> int:
    """At most so many knots as the column can use: of near whole numbers, those between the bounds."""
    if not column.is_number or column.scale != "linear":
        return number
    between = column.high - column.low - 1.0
    are_whole = column.low.is_integer() and column.high.is_integer()
    is_near_and_whole = are_whole and column.low >= 0.0 and between < _MOST_NEAR_NUMBERS
    return min(number, int(between)) if is_near_and_whole else number


# The random features of kernels: over which length they change, and how many there are. Decided from public facts alone.

NUMBERS_OF_KERNEL_FEATURES = (1000, 500, 250, 120)
"""The numbers of random features that are tried, the largest first. Without privacy it is the largest."""
LEAST_STRENGTH = {1000: 2500.0, 500: 1250.0, 250: 1000.0}
"""A number of features is taken if there are so many rows for each unit of noise on one weight, in units of the norm of a
row. The smallest number needs no such strength. Compared by benchmarks/defaults.py."""
LEAST_SHARE_OF_NUMBERS = 2.0 / 3.0
"""The least share of numbers among the columns of a table of numbers. Such tables gain most by random features."""
MORE_ROWS_WITH_CATEGORIES = 1.5
"""Other tables need so many times as many rows: Bank at a pure epsilon of 4 and Adult at (1, 1e-6) erred by .004 more with
features, and Covertype at (0.5, 1e-6), a table of numbers, by .009 less with fewer rows for each column."""
STRENGTH_UNDER_LAPLACE = 10.0
"""Laplace noise grows faster with the number of features, so a number of features needs this many times as many rows. At a
pure epsilon of 4, Covertype erred by .230 with 120 features and by .236 with 500, Skin by .003 with 120 and .007 with 1,000
(one fit each)."""
LENGTH_OVER_SQUARE = 0.27
"""The length scale of a Gaussian kernel, over the squared norm of a typical row.

Distances between rows grow with their norm. The length grows faster, because rows of many columns differ in many directions,
and no more rows tell what happens there. Of lengths from 0.15 to 6, the best at (1, 1e-6) were 0.15 to 0.35 on Skin, where
the squared norm is 1, 1 to 1.5 on Covertype (5.3), 1 on KDD Cup 99 (7.3), and 2 to 4.5 on Adult and Bank (9.4)."""
LENGTH_OF_STANDARDISED = 0.5
"""The length scale without a schema, over the square root of the number of columns.

It is for columns of mean 0 and standard deviation 1, and a little shorter than that of scikit-learn's gamma="scale", 0.71.
Chosen by benchmarks/kernel_lengths.py on rings, Skin, Covertype and clusters, confirmed on Adult, Diamonds, Flights, Bank
and KDD Cup 99: 0.71 is better by .03 at most, except for rings in 8 columns (.06) and clusters (.04), and 0.5 by .06 on a
spiral. Where every row has norm 1, both are as good. Where the longest row has norm 1, both are too long, and 0.71 errs
by up to .2 more."""
LONGEST_OVER_NORM = 1.0
"""The largest such length, over the norm of a typical row. Two rows are about 1.4 norms apart, and with a much larger length
all rows would have nearly the same features."""
ENOUGH_ROWS = {"gaussian": 200.0, "laplace": 250.0}
"""Random features stand beside encoded columns if so many rows come to each column for each unit of noise: the noise on one
weight in units of the norm of a row. It depends on the law of the noise. Compared in benchmarks/defaults.py."""
NORM_OVER_COLUMNS = 2.0
"""The norm of the features over that of a typical encoded row, where the encoded columns of a row stand beside them."""
_MEAN_SQUARE_OF_NUMBERS = 1.0 / 3.0
"""The mean square of a number that is uniform in [-1, 1]."""


def length_scale(kernel: str, n_inputs: int, encoder: Encoder | None) -> float:
    """The length over which a kernel falls, for rows of so many columns.

    It follows from the norm of a typical encoded row. Without a schema the columns are taken to have mean 0 and standard
    deviation 1, as scikit-learn's users scale them. Categories of two levels without a level for other values have the bound
    of a number in [-1, 1], but they are -1 or +1, and two rows that differ there are far apart. On NLTCS, described by 15
    such columns, 500 features at (1, 1e-6) err by .172 at the length that follows, and by .190 at 1.5, about the length
    without this difference.
    """
    if encoder is None:
        length = LENGTH_OF_STANDARDISED * math.sqrt(n_inputs)
    else:
        bound = encoder.row_bound
        groups = zip(encoder.schema.columns, bound.sizes, bound.linked, strict=False)  # groups of interactions come last
        signs = sum(not column.is_number and size == 1 and not linked for column, size, linked in groups)
        square = usual_norm_of_rows(encoder) ** 2 + signs * (1.0 - _MEAN_SQUARE_OF_NUMBERS)
        length = min(LENGTH_OVER_SQUARE * square, LONGEST_OVER_NORM * math.sqrt(square))
    # Rounded, because people read this number.
    return float(f"{_LENGTH_FOR[kernel](length):.3g}")


def feature_norm(encoder: Encoder) -> float:
    """The norm of the features of a row whose encoded columns stand beside them."""
    # Rounded, because people read this number.
    return float(f"{NORM_OVER_COLUMNS * usual_norm_of_rows(encoder):.3g}")


_LENGTH_FOR: dict[str, Callable[[float], float]] = {
    "rbf": lambda length: length,
    # The L1 distance of two encoded rows is about the square of their L2 distance: two numbers in [-1, 1] differ by 2/3 in
    # the mean and in the mean square, and two categories by 2 in both. So both kernels fall as much at the same two rows.
    "laplacian": lambda length: 2.0 * length**2,
    # The product of 1 / (1 + D_j^2 / s^2) is about exp(-|D|^2 / s^2).
    "cauchy": lambda length: math.sqrt(2.0) * length,
}
"""For each kernel, the length at which it falls about as far as the Gaussian kernel of a given length."""


def number_of_features(settings: Settings, kept: Encoder | None, count: Callable[[], int] | None) -> int:
    """How many random features a kernel gets: the more, the more rows there are for each unit of noise.

    Parameters
    ----------
    settings : the checked parameters of the fit
    kept : the encoder whose columns stand beside the features, so that there may be no features; None if features are alone
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    """
    if not settings.budget.is_private:
        return NUMBERS_OF_KERNEL_FEATURES[0]
    n_rows = None if count is None else count()
    for number in NUMBERS_OF_KERNEL_FEATURES:
        # Where there is no plan, that of the smallest number says what is wrong.
        with suppress(ParameterError):
            plan = make_plan(settings, (0 if kept is None else kept.n_features) + number, n_rows)
            least = LEAST_STRENGTH.get(number, 0.0) * (1.0 if law_of(plan) == "gaussian" else STRENGTH_UNDER_LAPLACE)
            is_strong = _rows_for_noise(plan, plan.problem.row_bound.l2_norm) >= least
            rows = _rows_for_noise(plan, plan.problem.row_norm)
            if is_strong and (kept is None or rows >= _rows_needed(plan, kept.schema)):
                return number
    return NUMBERS_OF_KERNEL_FEATURES[-1] if kept is None else 0


def _rows_for_noise(plan: AnyPlan, norm: float) -> float:
    """The number of rows for each unit of noise: the noise on one weight in units of this norm of a row."""
    noise = noise_on_a_weight(plan)
    return plan.problem.n_rows_low * norm / noise if noise else math.inf


def _rows_needed(plan: AnyPlan, schema: Schema) -> float:
    """How many rows must come for each unit of noise, so that random features pay."""
    return ENOUGH_ROWS[law_of(plan)] * (1.0 if is_of_numbers(schema) else MORE_ROWS_WITH_CATEGORIES) * len(schema.columns)


def is_of_numbers(schema: Schema, least: float = LEAST_SHARE_OF_NUMBERS) -> bool:
    """Whether most columns are numbers."""
    return sum(column.is_number for column in schema.columns) >= least * len(schema.columns)


# Which interactions an additive model has: from public facts alone, written out in its schema.
#
# Pairs are products of coarse effects of two columns. "All" interactions are random Fourier features of the whole encoded
# row (`confide.features.fourier`). Both take a part of the norm of a row, and so of the noise.

CHOICES = ("pairs", "all", "auto")
"""The interactions that a user may ask for by a word."""
COARSE_KNOTS = 1
"""The number of knots with which numbers enter products: three hats a number."""
MOST_PRODUCTS = 16
"""Pairs with more products are left out of "pairs", such as a number with a category of many levels."""
MOST_WEIGHTS = 5000
"""The largest number of weights of the pairs together."""
MOST_FEATURES = {"gaussian": 1800, "laplace": 100}
"""The largest number of random features, by the law of the noise. Laplace noise grows with the number of weights; 50, 100
and 200 features were compared on the data of benchmarks/peers. Under Gaussian noise more would predict better still: with
1,000, 1,500 and 3,000 features Covertype errs by .182, .172 and .160 at (4, 1e-5). But they take longer, too."""
LEAST_FEATURES, ROWS_PER_FEATURE = 100, 2.0
"""The least number of random features under Gaussian noise, and how many rows for each unit of noise ask for one feature
more (benchmarks/notes/which_interactions.md)."""
NORM_OF_FEATURES = {"gaussian": 1.15, "laplace": 0.8}
"""The norm of the random features over the norm of a typical encoded row. Compared were 0.6, 1.15 and 1.7 under Gaussian
noise, and 0.6, 1.15 and 2.3 under Laplace noise, where Covertype was best with the least and Skin with the middle one. With
two ridges (`confide.training.alpha`), 0.8 is better for effects of single columns, and 1.15 for Skin."""
MANY_COLUMNS = 15
"""With more columns, random features of an additive model need more rows for each, by the same factor. KDD Cup 99 with 41
columns errs by .0039 with them at (1, 1e-5), by .0026 without, and by .0024 with atoms, for which they leave no room."""
ENOUGH_ROWS_OF_REGRESSION = 2000.0
"""Regressions have random features only if so many rows in all come for each unit of noise, too: with many weights the ridge
is larger, and shrinks an effect that is nearly a straight line (benchmarks/notes/which_interactions.md)."""
_LEAST_SHARE = {"gaussian": LEAST_SHARE_OF_NUMBERS, "laplace": 0.8}
"""The least share of numbers among the columns, by the law of the noise. At a pure epsilon of 4, expensive diamonds, six
numbers of nine columns, are told with errors of .026 without features and .030 with them, and Covertype, ten of twelve, with
.222 and .217."""
FEATURES_OF_FEW_COLUMNS = RandomFeatures(400, 1.0, 1.0, columns=3)
"""The random features of two classes in a table with more categories, beside curves and atoms: each is a function of three
columns, drawn by what the sums of both classes tell (benchmarks/notes/which_interactions.md)."""
ENOUGH_ROWS_OF_FEW_COLUMNS = 20_000.0
"""They are taken if so many rows come for each unit of noise. Bank, Adult, and Bank with economic indicators have 22,000 to
24,700 at (4, 1e-5), where all three err less often, and 12,000 to 13,400 at 2, where Adult gains nothing."""
_LARGEST_MU = 0.25
"""Where noise is smaller than with this mu, or there is none, rows count as with this mu: a sample errs without noise, too,
and a thousand rows are too few for features."""
KNOTS_OF_FEATURES = 6
"""How many knots of a number random features see. It decides how far apart rows are, and so what a length scale means: with
12 knots, 100 features erred twice as often on Skin as with 6. All lengths were compared with 6. Beside the features curves
have the knots that they would have alone: at (4, 1e-5) Covertype errs by .1676 with 6 and with 12 (8 fits each)."""
SettingsOf: TypeAlias = Callable[[Encoder], Settings]
Count: TypeAlias = Callable[[], int]


def with_interactions(
    described: Schema, schema: Schema, interactions: Any, settings_of: SettingsOf, count: Count | None, n_classes: Count
) -> Schema:
    """The schema in which the interactions of an additive model are written out.

    Parameters
    ----------
    described : the public description of the columns, as the user gave it
    schema : the same, in which knots are chosen
    interactions : lists of names of columns, mappings as in a schema or `Interaction` objects; or one of `CHOICES`
    settings_of : the checked parameters of the fit, for the encoder of a schema
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    n_classes : gives the number of classes, at most 2 for a number; it raises ParameterError where nobody can choose

    Raises
    ------
    ParameterError
        If the parameter cannot be used, or there would be too many weights.
    SchemaError
        If an interaction is of an unknown column, or of a column with itself.
    """
    if is_list(interactions):
        return _with_named(schema, list(interactions))
    if not isinstance(interactions, str) or interactions not in CHOICES:
        hint = suggestion(interactions, CHOICES) if isinstance(interactions, str) else ""
        raise ParameterError(f'interactions must be a list of lists of names of columns, or "pairs", "all" or "auto"{hint}.')
    if interactions == "pairs":
        return with_pairs(schema)
    if interactions == "auto":
        return _automatic(described, schema, settings_of, count, n_classes)
    # Random features of all columns together, and knots where the user said nothing about them.
    return (
        schema
        if schema.random_features
        else _planned_features(described, schema, settings_of, None if count is None else count())[0]
    )


def with_pairs(schema: Schema) -> Schema:
    """The schema with coarse products of all pairs of columns that have few products, beside those that it names itself."""
    coarse = {column.name: replace(column, knots=COARSE_KNOTS) if column.is_number else column for column in schema.columns}
    sizes = {name: Encoder(Schema([column])).n_features for name, column in coarse.items()}
    named = {frozenset(interaction.columns) for interaction in schema.interact}
    pairs = [pair for pair in combinations(schema.columns, 2) if frozenset(column.name for column in pair) not in named]
    few = [pair for pair in pairs if math.prod(sizes[column.name] for column in pair) <= MOST_PRODUCTS]
    n_weights = sum(math.prod(sizes[column.name] for column in pair) for pair in few)
    if n_weights > MOST_WEIGHTS:
        raise ParameterError(wording("too many pairs", pairs=len(few), n_weights=n_weights, most=MOST_WEIGHTS))
    scale = _scale_of(len(schema.columns), len(few))
    bent = {name for interaction in schema.interact if interaction.is_curve for name in interaction.columns}
    made = []
    for pair in few:
        # A pair has no knots if all its numbers are straight lines alone, without curves beside them.
        straight = [column.knots == 0 and column.name not in bent for column in pair if column.is_number]
        knots = 0 if straight and all(straight) else COARSE_KNOTS
        made.append(Interaction(tuple(column.name for column in pair), knots, scale))
    return replace(schema, interact=(*schema.interact, *made))


def _with_named(schema: Schema, interactions: list[Any]) -> Schema:
    """The schema with the interactions that a user named. Lists of names become coarse products."""
    is_whole = [isinstance(entry, (Interaction, Mapping)) for entry in interactions]
    scale = _scale_of(len(schema.columns), is_whole.count(False))
    if not all(whole or is_list(entry) for entry, whole in zip(interactions, is_whole, strict=True)):
        raise ParameterError('each interaction must be a list of names of columns, as in interactions=[["age", "hours"]].')
    made = [
        entry if whole else Interaction(tuple(entry), COARSE_KNOTS, scale)
        for entry, whole in zip(interactions, is_whole, strict=True)
    ]
    # The user's entries are checked with each other first. Then those that the schema describes stay as they are there.
    checked = Schema(schema.columns, interact=made).interact
    described = {frozenset(interaction.columns) for interaction in schema.interact}
    more = [interaction for interaction in checked if frozenset(interaction.columns) not in described]
    return replace(schema, interact=(*schema.interact, *more)) if more else schema


def _automatic(described: Schema, schema: Schema, settings_of: SettingsOf, count: Count | None, n_classes: Count) -> Schema:
    """The schema with random features where they are expected to help, otherwise the schema itself.

    A schema that names interactions, or the knots of all columns, stays as it is. Pairs are never taken: on the data sets
    where they helped much, random features helped more (benchmarks/automatic_interactions.py). Neither are random features
    for counts, three and more classes, beside intervals, which they cannot have, and beside penalties and monotone effects.
    Features of all columns hurt where most columns are categories, and there can be none beside atoms. In both cases
    features of a few columns each are taken.
    """
    if not any(map(_is_open, described.columns)) or described.interact or schema.random_features is not None:
        return schema
    # What cannot be served beside features is refused here, and is left to the schema without them.
    with suppress(ParameterError, InputError):
        settings = settings_of(Encoder(schema))
        is_counted = not isinstance(settings.minimised, ScoreLoss) or settings.minimised.loss.constants.is_count
        if is_counted or settings.has_intervals:
            return schema
        n_rows = None if count is None else count()
        is_regression = settings.score_loss.score_size is not None
        may_seek = not is_regression and settings.value("atoms") == "auto"
        seeks_atoms = may_seek and with_slots(Encoder(schema), settings, count).slots > 0
        if seeks_atoms or not is_of_numbers(schema):
            made = replace(schema, random_features=FEATURES_OF_FEW_COLUMNS)
            encoder = Encoder(made)
            plan = make_plan(settings_of(encoder), encoder.n_features + FEATURES_OF_FEW_COLUMNS.number, n_rows)
            rows = min(_rows_for_noise(plan, plan.problem.row_norm), plan.problem.n_rows_low)
            # Without the sums of both classes, nothing says which columns matter.
            is_clear = rows >= ENOUGH_ROWS_OF_FEW_COLUMNS and getattr(plan, "scaling", None) is not None
            return made if is_clear and not is_regression and n_classes() == 2 else schema
        made, plan = _planned_features(described, schema, settings_of, n_rows)
        needed = _rows_needed(plan, schema) * max(1.0, len(schema.columns) / MANY_COLUMNS)
        enough = max(needed, ENOUGH_ROWS_OF_REGRESSION if is_regression else 0.0)
        suits = _rows_for_features(plan) >= enough and is_of_numbers(schema, _LEAST_SHARE[law_of(plan)])
        if suits and (n_classes() <= 2 or is_regression):
            features: Any = made.random_features
            asked = made if is_regression else replace(made, random_features=replace(features, if_found=True))
            found = make_plan(settings_of(Encoder(asked)), plan.problem.n_features, n_rows)
            return made if getattr(found, "without", None) is None else asked
    return schema


def _rows_for_features(plan: AnyPlan) -> float:
    """The number of rows for each unit of noise, but at most as many as with `_LARGEST_MU`."""
    return min(_rows_for_noise(plan, plan.problem.row_norm), plan.problem.n_rows_low * _LARGEST_MU)


def _planned_features(
    described: Schema, curves: Schema, settings_of: SettingsOf, n_rows: int | None
) -> tuple[Schema, AnyPlan]:
    """The schema with random features, and its plan. The number of features depends on the law of the noise of the plan.

    It has as many knots as the schema of curves alone, but no fewer than features see.

    Raises
    ------
    ParameterError
        If there is no plan.
    """
    pairs = zip(curves.columns, described.columns, strict=True)
    chosen = [own.n_knots for own, before in pairs if own.is_number and _is_open(before)]
    schema = with_even_knots(described, max([KNOTS_OF_FEATURES, *chosen]))
    bound = Encoder(schema).row_bound
    # Distances between rows grow with the number of groups, though not quite with its root: in wide tables, many columns
    # are the same in most rows. Rounded, because people read these numbers in the schema.
    length_scale = round(0.5 * len(bound.sizes) ** 0.4, 2)

    def planned(law: str, number: int) -> tuple[Schema, AnyPlan]:
        """With so many features of a norm that suits a law of noise; the noise of the plan may have another one."""
        norm = round(NORM_OF_FEATURES[law] * usual_norm(bound, 0.0), 2)
        made = replace(schema, random_features=RandomFeatures(number, length_scale, norm, knots=KNOTS_OF_FEATURES))
        encoder = Encoder(made)
        return made, make_plan(settings_of(encoder), encoder.n_features + number, n_rows)

    with suppress(ParameterError):
        made, plan = planned("gaussian", most := MOST_FEATURES["gaussian"])
        if not isinstance(plan, Plan) or plan.noise is None or plan.noise.law == "gaussian":
            # Whole hundreds, because people read this number.
            enough = min(most, int(_rows_for_features(plan) / ROWS_PER_FEATURE) // 100 * 100)
            return planned("gaussian", max(LEAST_FEATURES, enough)) if enough < most else (made, plan)
    return planned("laplace", MOST_FEATURES["laplace"])


def _scale_of(n_columns: int, n_products: int) -> float:
    """The scale at which so many interactions take at most as much of the norm of a row as the columns do."""
    return round(min(1.0, math.sqrt(n_columns / max(n_products, 1))), 2)
