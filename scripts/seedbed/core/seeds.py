"""Seeds of runs, as pairs of init seed and data seed: which count as independent, and how many are needed."""

from collections.abc import Iterable, Sequence

FEWEST_SEEDS = 3  # on a side of a difference with a verdict; two seeds have one degree of freedom


def is_crossed(seeds: Sequence[tuple[int, int]]) -> bool:
    """Whether two init seeds or more and two data seeds or more share runs, so that each varies apart."""
    fewest, most = sorted(len({seed[part] for seed in seeds}) for part in (0, 1))
    return fewest > 1 and (fewest < len(seeds) or most < len(seeds))


def independent_seeds(seeds: Iterable[tuple[int, int]]) -> int:
    """How many independent seeds there are: of crossed ones the levels of the factor with fewer."""
    distinct = list(dict.fromkeys(seeds))
    if not is_crossed(distinct):
        return len(distinct)
    return min(len({seed[part] for seed in distinct}) for part in (0, 1))
