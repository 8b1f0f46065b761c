"""Cut token ids to a maximum length."""

from collections.abc import Sequence

from seedbed.core.naming import EOS


def truncate(ids: Sequence[int], limit: int, ending: Sequence[int] = (EOS,)) -> list[int]:
    """At most `limit` ids, with the special tokens of the end, as AutoTokenizer's truncation leaves them."""
    return list(ids) if len(ids) <= limit else [*ids[: limit - len(ending)], *ending]
