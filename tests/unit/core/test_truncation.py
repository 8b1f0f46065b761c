"""Truncation of pairs: that of Transformers, in one cut or in two."""

import random

import pytest
from transformers import PreTrainedTokenizerFast

from seedbed.core.truncation import Pair, kept_of_pair, longest_first

SPECIAL = {"bert": (1, 1, 1), "roberta": (1, 2, 1)}


@pytest.fixture(scope="module", params=SPECIAL)
def kind(request):
    """Numbers of special tokens, and a tokenizer of words `w0`, `w1` that puts them around two texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    before, between, after = SPECIAL[request.param]
    words = {"[S]": 0, "[UNK]": 1, **{f"w{number}": number + 2 for number in range(100)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[S] $A [S]", pair=f"[S] $A {'[S] ' * between}$B [S]", special_tokens=[("[S]", 0)]
    )
    return (before, between, after), PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


def test_pairs_are_cut_as_transformers_cuts_them(kind):
    (before, between, after), tokenizer = kind
    draw = random.Random(1)
    for _ in range(300):
        first, second = draw.randint(1, 20), draw.randint(1, 20)
        texts = [" ".join(f"w{draw.randrange(100)}" for _ in range(size)) for size in (first, second)]
        pair = Pair(before, first, between, second, after)
        whole = tokenizer(*texts)["input_ids"]
        assert len(whole) == first + second + pair.special
        limit = draw.randrange(pair.special, 40)
        expected = tokenizer(*texts, truncation="longest_first", max_length=limit)["input_ids"]
        assert [whole[place] for place in kept_of_pair(pair, len(whole), limit)] == expected
        earlier = draw.randrange(limit, 44)
        cut = [whole[place] for place in kept_of_pair(pair, len(whole), earlier)]
        assert [cut[place] for place in kept_of_pair(pair, len(cut), limit)] == expected


@pytest.mark.parametrize(
    ("first", "second", "room", "stay"),
    [(9, 3, 8, (5, 3)), (3, 9, 8, (3, 5)), (9, 8, 7, (4, 3)), (8, 9, 7, (3, 4)), (9, 9, 7, (3, 4))],
)
def test_the_odd_token_goes_to_the_longer_text_or_to_the_second(first, second, room, stay):
    assert longest_first(first, second, room) == stay
