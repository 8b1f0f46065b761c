"""Variances of a difference of accuracies, from what people know before anything is trained.

The score of side k with seed s on example i is right (1) or wrong (0). Its two-way analysis into random
effects (Searle et al. 1992, ch. 4) is x_ksi = p_k + S_ks + E_ki + I_ksi: the accuracy, what the seed adds on
all examples, what the example adds with all seeds, and the interaction. The three have mean zero and are
uncorrelated, so

    var S_k + var E_k + var I_k = p_k (1 - p_k),                                            (1)

the variance of anything that is right with probability p_k. Two seeds of a side share the example alone:

    cov(x_ksi, x_ks'i) = var E_k,                                                           (2)

and so do a run of side a and a run of side b, if seeds of different sides have nothing in common:

    cov(x_asi, x_bs'i) = cov(E_a, E_b) = c.                                                 (3)

Of two runs of accuracies p and q, the covariance over examples follows from the share g of examples on which
both are right or both are wrong, g = P(1, 1) + P(0, 0) with P(1, 1) = pq + cov, or from their correlation r:

    cov = (g - pq - (1 - p)(1 - q)) / 2 = r sqrt(p (1 - p) q (1 - q)).                      (4)

The accuracies of n seeds on m examples vary by var S_k + var I_k / m from seed to seed. With d that standard
deviation, (1) and (2) give

    var S_k = (m d^2 - (p_k (1 - p_k) - var E_k)) / (m - 1), not below 0,                   (5)

and (1) the interaction. The difference of a and b then has the components

    seeds: var S_a + var S_b;  interaction: var I_a + var I_b;  examples: var E_a + var E_b - 2 c.   (6)

Their sum is p_a (1 - p_a) + p_b (1 - p_b) - 2 c. Pairs of seeds have the same components: the correlation of
the two effects of a seed is not known beforehand, and counts as zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seedbed.analysis.planning import Design, Plan, Variances
from seedbed.core.errors import SeedbedError
from seedbed.core.words import percent

ROUNDING = 1e-9
SIDES = "a run of each side"
SEEDS = "two seeds of a side"


@dataclass(frozen=True)
class Alike:
    """On how many examples two runs are right together, known by one of both numbers.

    Attributes:
        agreement: share of the examples on which both are right or both are wrong.
        correlation: of right and wrong over the examples.
    """

    agreement: float | None = None
    correlation: float | None = None

    def covariance(self, p: float, q: float) -> float:
        """Covariance over examples of two runs with these accuracies, formula (4)."""
        if self.correlation is not None:
            return self.correlation * math.sqrt(p * (1 - p) * q * (1 - q))
        if self.agreement is None:
            raise ValueError("neither agreement nor correlation is known")
        return (self.agreement - _agreement(p, q, 0.0)) / 2

    def of_covariance(self, p: float, q: float, covariance: float) -> float:
        """The number that this covariance would have: an agreement, or a correlation."""
        if self.correlation is not None:
            return covariance / math.sqrt(p * (1 - p) * q * (1 - q))
        return _agreement(p, q, covariance)


def _agreement(p: float, q: float, covariance: float) -> float:
    return p * q + (1 - p) * (1 - q) + 2 * covariance


@dataclass(frozen=True)
class Assumed:
    """What is known of two sides before anything is trained.

    Attributes:
        accuracies: of sides a and b, fractions between 0 and 1.
        sds: of each side, the standard deviation of its test accuracies over seeds, a fraction; None where it
            is not known: then seeds differ by the interaction alone.
        examples: test examples.
        paired: whether runs are compared in pairs of one seed.
        sides: how a run of side a and a run of side b are alike; None where that is not known: then they are
            right and wrong independently.
        seeds: how two seeds of a side are alike, of each side; None where that is not known.
    """

    accuracies: tuple[float, float]
    sds: tuple[float, float] | None
    examples: int
    paired: bool
    sides: Alike | None = None
    seeds: tuple[Alike, Alike] | None = None

    @property
    def most(self) -> tuple[float, float]:
        """p (1 - p) of each side, the sum of its components."""
        a, b = (p * (1 - p) for p in self.accuracies)
        return a, b


def plan_of(assumed: Assumed, confidence: float, power: float) -> Plan:
    """A plan with the variances of formula (6).

    Where it is not known how two seeds of a side are alike, the split of (1) is open. The plan then counts
    all that is not the seeds' own as the examples', which no number of seeds reduces: it never promises too
    much. Its range ends where two seeds of a side differ on as many examples as two sides do.

    Raises:
        SeedbedError: a standard deviation is larger than any of such accuracies; runs cannot be alike in that
            way, by their accuracies or by how the seeds of a side are alike; or nothing varies.
    """
    _check_sds(assumed)
    shared = 0.0 if assumed.sides is None else assumed.sides.covariance(*assumed.accuracies)
    if assumed.seeds is None:
        splits = [_largest_shares(assumed), _smallest_shares(assumed, shared)]
    else:
        splits = [_shares_of_seeds(assumed, assumed.seeds)]
    _check_sides(assumed, shared, splits[0])
    variances = [_variances(assumed, shares, shared) for shares in splits]
    _check_some(variances)
    first, *others = (Design(each, assumed.examples, confidence, power) for each in variances)
    return Plan(first, tuple(others) or (first,))


def _variances(assumed: Assumed, shares: Sequence[float], covariance: float) -> Variances:
    """Formulas (5) and (6).

    Args:
        shares: var E of each side.
        covariance: c.
    """
    m, seeds, interaction = assumed.examples, 0.0, 0.0
    for side, (whole, of_examples) in enumerate(zip(assumed.most, shares, strict=True)):
        rest = whole - of_examples
        variance = rest / m if assumed.sds is None else assumed.sds[side] ** 2
        own = min(rest, max(0.0, (m * variance - rest) / (m - 1)))
        seeds += own
        interaction += max(0.0, rest - own)
    examples = max(0.0, sum(shares) - 2 * covariance)
    return Variances(seeds, examples, interaction, 1 if assumed.paired else 2)


# --- what examples add to the scores of each side: var E of a and of b --------------------------------------


def _largest_shares(assumed: Assumed) -> tuple[float, float]:
    """All but the variance of the seeds: there is no interaction then."""
    sds = assumed.sds or (0.0, 0.0)
    a, b = (whole - sd**2 for whole, sd in zip(assumed.most, sds, strict=True))
    return a, b


def _smallest_shares(assumed: Assumed, covariance: float) -> tuple[float, float]:
    """Those of the smallest sum with this covariance: as large as it, if neither side is too small for that.

    The covariance is no larger than the geometric mean of the two.
    """
    size, (most_a, most_b) = abs(covariance), _largest_shares(assumed)
    if size <= min(most_a, most_b):
        return size, size
    return (most_a, size**2 / most_a) if most_a < most_b else (size**2 / most_b, most_b)


def _shares_of_seeds(assumed: Assumed, seeds: tuple[Alike, Alike]) -> tuple[float, float]:
    """Formula (2)."""
    found = []
    for alike, p, largest in zip(seeds, assumed.accuracies, _largest_shares(assumed), strict=True):
        share = alike.covariance(p, p)
        if not -ROUNDING <= share <= largest + ROUNDING:
            raise _contradiction(alike, SEEDS, (p, p), (0.0, largest))
        found.append(min(largest, max(0.0, share)))
    a, b = found
    return a, b


# --- what cannot be -----------------------------------------------------------------------------------------


def _check_sds(assumed: Assumed) -> None:
    for p, sd, whole in zip(assumed.accuracies, assumed.sds or (0.0, 0.0), assumed.most, strict=True):
        if sd**2 > whole:
            raise SeedbedError(
                f"accuracies of {percent(p)} cannot vary so much over seeds",
                where="--sd-seeds",
                found=f"{100 * sd:g} points",
                hint=f"give the standard deviation of test accuracies in points, at most "
                f"{100 * math.sqrt(whole):.1f}",
            )


def _check_some(variances: Sequence[Variances]) -> None:
    if not any(each.seeds + each.examples + each.interaction > ROUNDING for each in variances):
        raise SeedbedError(
            "with these numbers all runs are right on the same examples, so that any difference is found",
            where="--agreement or --correlation",
            hint="give an agreement or a correlation below 1",
        )


def _check_sides(assumed: Assumed, covariance: float, shares: Sequence[float]) -> None:
    """Refuse two sides that are more or less alike than their accuracies and their seeds allow."""
    if assumed.sides is None:
        return
    p, q = assumed.accuracies
    most = math.sqrt(shares[0] * shares[1])
    # the bounds of Fréchet of two events with these probabilities, and that of Cauchy and Schwarz
    low, high = max(max(0.0, p + q - 1) - p * q, -most), min(min(p, q) - p * q, most)
    if not low - ROUNDING <= covariance <= high + ROUNDING:
        raise _contradiction(assumed.sides, SIDES, (p, q), (low, high))


def _contradiction(
    alike: Alike, runs: str, accuracies: tuple[float, float], covariances: tuple[float, float]
) -> SeedbedError:
    """The error, with the range of what is possible, rounded inwards."""
    name = "correlation" if alike.agreement is None else "agreement"
    option = f"--{name}" if runs == SIDES else f"--{name}-seeds"
    low, high = (alike.of_covariance(*accuracies, each) for each in covariances)
    low, high = math.ceil(1000 * (low - ROUNDING)) / 1000, math.floor(1000 * (high + ROUNDING)) / 1000
    p, q = map(percent, accuracies)
    return SeedbedError(
        f"{runs} cannot have this {name} with accuracies of {p} and {q} and the other numbers given",
        where=option,
        found=getattr(alike, name),
        hint=f"give {option} from {low:g} to {high:g}, or leave it out",
    )
