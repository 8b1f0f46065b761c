"""Reading Webis-CLS-10's XML: labels from ratings, texts from elements, and everything that can be wrong."""

import logging

import pytest
from builders_datasets import SPLITS, define_dataset, webis_item, webis_xml, write_source

from seedbed.core.errors import SeedbedError
from seedbed.core.files import read_jsonl
from seedbed.data.preparation import prepare as prepare_dataset

GOOD = webis_xml(
    webis_item("4.0", "Très bon."),
    webis_item("2.0", "Nul, à fuir !"),
    webis_item(3.5, "Magnifique."),
    webis_item("1", "Raté."),
)


def prepare(tmp_path, train, **changes):
    """Prepare with this file for train and a good one for the other splits."""
    manifest = write_source(tmp_path / "source", {**dict.fromkeys(SPLITS, GOOD), "train": train})
    prepare_dataset("d", define_dataset("webis_cls", **changes), manifest, tmp_path / "out", {})
    return read_jsonl(tmp_path / "out/train.jsonl")


def error(tmp_path, train, **changes):
    with pytest.raises(SeedbedError) as caught:
        prepare(tmp_path, train, **changes)
    assert not (tmp_path / "out").exists()
    return str(caught.value)


def test_label_is_whether_the_rating_is_over_three(tmp_path):
    assert prepare(tmp_path, GOOD) == [
        {"id": "train-0", "text": "Très bon.", "label": 1},
        {"id": "train-1", "text": "Nul, à fuir !", "label": 0},
        {"id": "train-2", "text": "Magnifique.", "label": 1},
        {"id": "train-3", "text": "Raté.", "label": 0},
    ]


def test_text_of_several_elements(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    xml = webis_xml(
        webis_item(4.5, "Je l'ai\nlu.", summary=" À lire "),
        webis_item(1, "Ennuyeux.", summary=""),
        webis_item(1, " ", summary="Sans un mot"),
    )
    rows = prepare(tmp_path, xml, columns={"text": ["summary", "text"], "label": "label"})
    assert [row["text"] for row in rows] == ["À lire Je l'ai lu.", "Ennuyeux.", "Sans un mot"]
    assert "train: 'summary' is empty in 1 of 3 examples" in caplog.text
    assert "train: 'text' is empty in 1 of 3 examples" in caplog.text


def test_all_elements_of_a_text_empty(tmp_path):
    xml = webis_xml(webis_item(4, "a"), webis_item(1, "", summary=" "))
    text = error(tmp_path, xml, columns={"text": ["summary", "text"], "label": "label"})
    assert "a text is empty" in text
    assert "train, line 6 (from" in text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "windows-1252"])
def test_declared_encodings_entities_and_cdata(tmp_path, encoding):
    xml = GOOD.replace("utf-8", encoding).replace(
        "Très bon.", "<![CDATA[<b>Tr&egrave;s</b> bon &]]> &amp; court&#232; &#x20AC;"
    )
    rows = prepare(tmp_path, xml.encode(encoding))
    assert rows[0]["text"] == "<b>Tr&egrave;s</b> bon & & courtè €"
    assert rows[1]["text"] == "Nul, à fuir !"


def test_byte_order_mark_and_crlf(tmp_path):
    rows = prepare(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert [row["text"] for row in rows] == ["Très bon.", "Nul, à fuir !", "Magnifique.", "Raté."]


def test_long_review_across_blocks(tmp_path):
    long = "é" * 99_999 + "!"
    rows = prepare(tmp_path, webis_xml(webis_item(4, long), webis_item(1, "😀 nul")))
    assert [row["text"] for row in rows] == [long, "😀 nul"]


def test_ratings_of_three_are_an_error(tmp_path):
    xml = webis_xml(webis_item(4, "a"), webis_item("3.0", "b"), webis_item(3, "c"), webis_item(1, "d"))
    text = error(tmp_path, xml)
    assert "a rating of 3 is neither positive nor negative (and 1 more like it)" in text
    assert "train, line 6 (from https://host/data.zip)" in text
    assert "neutral_ratings: drop" in text


def test_dropped_ratings_of_three_leave_the_ids_as_they_are(tmp_path, caplog):
    xml = webis_xml(webis_item(4, "a"), webis_item("3.0", "b"), webis_item(2.5, "c"), webis_item(3, "d"))
    rows = prepare(tmp_path, xml, neutral_ratings="drop")
    assert [(row["id"], row["label"]) for row in rows] == [("train-0", 1), ("train-2", 0)]
    assert "train: dropped 2 of 4 reviews, rated 3" in caplog.text


@pytest.mark.parametrize("rating", ["", "cinq", "0", "5.5", "nan", "inf", "-1", "4,0"])
def test_ratings_that_are_none(tmp_path, rating):
    text = error(tmp_path, webis_xml(webis_item(4, "a"), webis_item(rating, "b"), webis_item(1, "c")))
    assert "a rating is not a number from 1 to 5\n" in text
    assert "train, line 6 (from" in text
    assert f"found: {rating!r}" in text


@pytest.mark.parametrize(
    ("name", "hint"), [("text", "or columns.text of the dataset"), ("rating", "correct the item")]
)
def test_missing_element(tmp_path, name, hint):
    bad = webis_item(1, "b").replace(f"<{name}>", "<x>").replace(f"</{name}>", "</x>")
    text = error(tmp_path, webis_xml(webis_item(4, "a"), bad, bad))
    assert f"an item has no element <{name}> (and 1 more like it)" in text
    assert "train, line 6 (from" in text
    assert "<x>" in text
    assert hint in text


def test_element_that_no_item_has(tmp_path):
    text = error(tmp_path, GOOD, columns={"text": ["sumary"], "label": "label"})
    assert "no element <sumary> (and 3 more like it)" in text
    assert "did you mean 'summary'?" in text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("Raté.", "Raté.</text><text>bis", "a second <text> in the item of line 14"),
        ("Raté.", "Raté <br/> et nul", "an element <br> inside <text>"),
        ("<items>", "<reviews>", "an element <reviews> where <items> is expected"),
        ("<items><item>", "<items><review>", "an element <review> where <item> is expected"),
    ],
)
def test_other_layouts(tmp_path, old, new, told):
    text = error(tmp_path, GOOD.replace(old, new))
    assert "does not have the layout of Webis-CLS-10" in text
    assert told in text
    assert f"train, line {15 if 'Raté' in old else 2} (from" in text


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("Magnif", "2 items before it are complete; the item of line 10 is not"),
        ("<text>Magnifique.</te", "2 items before it are complete; the item of line 10 is not"),
        ("</badges", "4 items before it are complete"),
    ],
)
def test_xml_that_breaks_off(tmp_path, kept, told):
    cut = GOOD[: GOOD.index(kept) + len(kept)] if kept in GOOD else GOOD[: GOOD.rindex("</items>") + 3]
    text = error(tmp_path, cut)
    assert "the XML is truncated" in text
    assert told in text
    assert f"train, line {18 if kept not in GOOD else 11} (from" in text


def test_empty_file_breaks_off(tmp_path):
    assert "0 items before it are complete" in error(tmp_path, "")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (b"Dupond & fils", "Dupond & fils"),
        (b"5 < 6", "5 < 6</text"),
        (b"un \x02 deux", r"un \x02 deux"),
        (b"un \x00 deux", r"un \x00 deux"),
        (b"un &#2; deux", "reference to invalid character number"),
        (b"d\xe9\xe7u", r"d\xe9\xe7u"),
        (b"caf&eacute;", "&eacute;<"),
        (b"</rating>", "mismatched tag"),
    ],
)
def test_xml_that_is_not_well_formed(tmp_path, fault, reason):
    text = error(tmp_path, GOOD.encode().replace(b"Magnifique.", fault))
    assert "the XML is not well-formed" in text
    assert reason in text
    assert "train, line 11 (from https://host/data.zip), column " in text
    assert "2 items before it are complete" in text


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE items [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE items [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE items SYSTEM "http://127.0.0.1:9/x.dtd">',
        '<!DOCTYPE items [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>',
    ],
)
def test_entities_are_refused(tmp_path, doctype):
    text = error(tmp_path, GOOD.replace("<items>", f"{doctype}<items>").replace("Raté.", "&a;"))
    assert "a document type declaration is refused" in text
    assert "train, line 2 (from" in text


@pytest.mark.parametrize("encoding", ["no-such", "shift_jis"])
def test_encoding_that_cannot_be_read(tmp_path, encoding):
    text = error(tmp_path, GOOD.replace("utf-8", encoding))
    assert "the XML declares an encoding that cannot be read" in text
    assert "convert the file to UTF-8" in text


def test_labels_are_zero_and_one(tmp_path):
    text = error(tmp_path, GOOD, labels=["negative", "positive"])
    assert "found: '1'" in text
    assert "declared labels: negative, positive" in text
