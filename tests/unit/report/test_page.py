"""The page in a real browser, opened as a file: what it shows, what it can do, and what it must not do."""

import io
import os
import re
import shutil
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from builders import tiered
from builders_documents import ACCURACIES, ANSWER, make_document
from builders_report import write_report
from PIL import Image
from playwright.sync_api import Browser, Error, Locator, Page, expect, sync_playwright
from synthetic import make_experiment

from seedbed.report.documents.html import to_page

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
PAPER = 673  # pixels: A4 without the margins of the page
WIDTHS = (375, 768, 1280)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with sync_playwright() as playwright:
        try:
            # Chromium's sandbox does not start for root
            browser = playwright.chromium.launch(executable_path=path, chromium_sandbox=os.getuid() != 0)
        except Error as error:
            pytest.fail(f"no browser: run `make browser` ({error.message})", pytrace=False)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("page")
    blocks, figures = make_document(folder)
    path = folder / "report.html"
    markup = to_page("Does pretraining help?", blocks, figures, subtitle="12 runs", lead=[ANSWER])
    path.write_text(markup, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(browser, address):
    """Opens the page in a window of its own; afterwards it must not have complained or asked for anything."""
    contexts, complaints, requests = [], [], []

    def visit(width: int = 1280, **options) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith("data:")} == {address}


def open_details(page: Page) -> None:
    page.locator("details").evaluate_all("all => all.forEach(details => details.open = true)")


def table(page: Page) -> Locator:
    """The table of accuracies."""
    return page.locator("#accuracies")


def column(page: Page, index: int) -> list[str]:
    return table(page).locator(f"tbody tr > :nth-child({index + 1})").all_text_contents()


def colours(page: Page, selector: str) -> tuple[str, str]:
    """Colour of the text, and of the page."""
    own = "element => getComputedStyle(element).color"
    return page.locator(selector).first.evaluate(own), page.locator("body").evaluate(
        own.replace("color", "backgroundColor")
    )


def contrast(colour: str, background: str) -> float:
    """Contrast ratio of two `rgb(r, g, b)` by WCAG 2.2."""
    luminances = []
    for text in (colour, background):
        shares = [int(part) / 255 for part in re.findall(r"\d+", text)[:3]]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        luminances.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(luminances) + 0.05) / (min(luminances) + 0.05)


# --- what is shown ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_never_scrolls_sideways(visit, width, script):
    page = visit(width, java_script_enabled=script)
    open_details(page)
    box = page.locator("html").evaluate("element => [element.scrollWidth, element.clientWidth]")
    assert box == [width, width]


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_but_a_region_that_scrolls_is_cut(visit, width):
    """What reaches beyond the window lies in a region that can be focused and scrolled."""
    page = visit(width)
    beyond = page.evaluate(
        """() => [...document.querySelectorAll("main *, header *")].filter(
            element => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll")
        ).map(element => element.outerHTML.slice(0, 80))"""
    )
    assert beyond == []
    region = page.get_by_role("region", name="Table 2: Fourteen columns")
    assert region.evaluate("element => element.scrollWidth > element.clientWidth")
    region.focus()
    page.keyboard.press("ArrowRight")
    expect(region).not_to_have_js_property("scrollLeft", 0)


@pytest.mark.parametrize(("width", "shown"), [(1280, 613), (375, 325)])
def test_a_figure_is_shown_whole_and_no_wider_than_it_was_drawn(visit, width, shown):
    figure = visit(width).locator("#a_figure")
    assert figure.locator("img").evaluate("image => image.clientWidth") == shown
    assert figure.locator(".scroll").evaluate("element => element.scrollWidth <= element.clientWidth")
    assert figure.get_by_role("region").count() == 0


@pytest.fixture(scope="module")
def small_report(tmp_path_factory) -> str:
    """The report of one contrast: tables of one row."""
    made = make_experiment(
        tmp_path_factory.mktemp("report"),
        sizes={"validation": 40, "test": 80},
        frameworks=["transformers"],
        seeds=[0, 1],
    )
    write_report(made)
    return (made.experiment / "report.html").as_uri()


def test_tables_of_one_row_fit_on_a_screen(browser, small_report):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(small_report)
    open_details(page)
    power = page.locator("#power")
    assert power.locator("tbody tr").count() == 1
    assert power.locator("thead th").first.inner_text() == "framework"
    assert "The row: recipe lab; seeds a side 2; test examples 80" in power.locator("caption").inner_text()
    cut = (
        "all => all.filter(region => region.scrollWidth > region.clientWidth).map(region => region.ariaLabel)"
    )
    assert page.locator(".table .scroll:visible").evaluate_all(cut) == []
    page.set_viewport_size({"width": 375, "height": 900})
    assert page.locator("html").evaluate("element => element.scrollWidth") == 375
    page.close()


@pytest.mark.parametrize(("width", "shown"), [(1280, True), (375, False)])
def test_the_first_table_fits_without_the_columns_that_stand_elsewhere(browser, small_report, width, shown):
    page = browser.new_page(viewport={"width": width, "height": 667})
    page.goto(small_report)
    first = page.locator("#first")
    assert first.locator(".spare").count() == 1 + 2, "a header and the cells of two rows"
    assert {cell.is_visible() for cell in first.locator(".spare").all()} == {shown}
    assert first.locator(".scroll").evaluate("element => element.scrollWidth <= element.clientWidth")
    # the figure of this report has no height: its caption alone stands between answer and table
    assert first.evaluate("element => element.getBoundingClientRect().bottom") <= 667
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_words_in_columns_stay_whole(browser, small_report, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(small_report)
    open_details(page)
    broken, words = page.evaluate(
        """() => {
            const cells = [...document.querySelectorAll("main table :is(th, td):not(.long)")];
            const words = cells.flatMap((cell) => [...cell.childNodes].flatMap((node) =>
                [...(node.nodeType === 3 ? node.data : "").matchAll(/[A-Za-z]{4,}/g)].map((word) => {
                    const range = document.createRange();
                    range.setStart(node, word.index);
                    range.setEnd(node, word.index + word[0].length);
                    return [word[0], range.getClientRects().length];
                })));
            return [words.filter(([, lines]) => lines > 1).map(([word]) => word), words.length];
        }"""
    )
    assert words > 100
    assert broken == []
    page.close()


def test_a_figure_stands_among_what_is_folded(visit):
    page = visit()
    folded = page.get_by_role("img", name="A folded figure")
    assert folded.is_hidden()
    page.locator("summary", has_text="The configuration").click()
    assert folded.evaluate("image => image.clientWidth") == 153, "no wider than it was drawn"


@pytest.mark.parametrize(("width", "room"), [(1280, 1000), (1500, 1200)])
def test_tables_find_room_on_wide_screens(visit, width, room):
    page = visit(width)
    assert page.locator("#wide_table .scroll").evaluate("element => element.clientWidth") >= room


def test_only_what_scrolls_is_a_stop_of_the_keyboard(visit):
    page = visit(1280)
    open_details(page)
    wrong = """all => all.filter(region => (region.tabIndex === 0) !==
        (region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight)
    ).map(region => region.ariaLabel)"""
    expect(page.locator("pre")).to_have_attribute("tabindex", "0")
    assert page.locator(".scroll").evaluate_all(wrong) == []
    assert not table(page).locator(".scroll").get_attribute("tabindex")
    page.set_viewport_size({"width": 375, "height": 900})
    expect(table(page).locator(".scroll")).to_have_attribute("tabindex", "0")
    expect(table(page).locator(".scroll")).to_have_attribute("role", "region")


def test_everything_can_be_read_without_the_script(visit):
    page = visit(java_script_enabled=False)
    assert page.get_by_role("heading", level=1).inner_text() == "Does pretraining help?"
    assert page.locator("section.lead").is_visible()
    assert column(page, 2) == ["58.3% ± 2.3%", "9.2% ± 3.8%", "60.2% ± 3.4%", "–"]
    assert page.get_by_role("navigation").get_by_role("link").count() == 4
    assert page.get_by_role("button").count() == 0
    assert page.locator("img").first.evaluate("image => image.naturalWidth") == 613


def test_the_contents_lead_to_a_heading_and_the_first_tab_to_the_content(visit):
    page = visit()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("link => link === document.activeElement && link.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.get_by_role("navigation").get_by_role("link", name="A figure").click()
    assert (
        page.locator("h2", has_text="A figure").evaluate("heading => heading.getBoundingClientRect().top")
        < 100
    )


def test_the_contents_are_folded_on_a_small_screen_only(visit):
    link = "nav a >> nth=0"
    assert visit(1280).locator(link).is_visible()
    assert not visit(375).locator(link).is_visible()


# --- tables -------------------------------------------------------------------------------------------------


def test_a_column_of_numbers_sorts_by_their_values_with_the_keyboard(visit):
    page = visit()
    button = table(page).get_by_role("button", name="test accuracy")
    header = table(page).get_by_role("columnheader", name="test accuracy")
    assert header.get_attribute("aria-sort") is None
    button.focus()
    page.keyboard.press("Enter")
    assert column(page, 2) == ["9.2% ± 3.8%", "58.3% ± 2.3%", "60.2% ± 3.4%", "–"]
    assert header.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert column(page, 2) == ["60.2% ± 3.4%", "58.3% ± 2.3%", "9.2% ± 3.8%", "–"], "an empty cell stays last"
    assert column(page, 0) == ["transformers", "fairseq", "fairseq", "transformers"], "rows stay whole"
    assert header.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert column(page, 2) == ["58.3% ± 2.3%", "9.2% ± 3.8%", "60.2% ± 3.4%", "–"], "as the page was made"
    assert header.get_attribute("aria-sort") is None


def test_sorting_by_another_column_keeps_the_order_of_the_first_within_it(visit):
    page = visit()
    table(page).get_by_role("button", name="seeds").click()
    assert column(page, 3) == ["1", "3", "5", "12"]
    table(page).get_by_role("button", name="framework").click()
    assert column(page, 3) == ["3", "12", "1", "5"]
    assert table(page).locator("[aria-sort]").all_inner_texts() == ["framework"]


@pytest.mark.parametrize("width", [1280, 375])
def test_what_pretraining_bought_is_sorted_text_by_text(browser, small_report, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(small_report)
    open_details(page)
    found = page.locator("#surely_wrong_1")
    texts = found.locator("tbody tr > :last-child")
    header, button = (found.get_by_role(role, name="sure") for role in ("columnheader", "button"))
    index = header.evaluate("header => header.cellIndex") + 1
    made = texts.all_inner_texts()
    button.focus()
    for direction in ("ascending", "descending"):
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == direction
        values = found.locator(f"tbody tr > :nth-child({index})").all_inner_texts()
        assert values == sorted(values, key=float, reverse=direction == "descending")
        assert sorted(texts.all_inner_texts()) == sorted(made)
    page.keyboard.press("Enter")
    assert texts.all_inner_texts() == made, "as the page was made"
    assert texts.first.is_visible()
    page.close()


CSV = (
    "framework,init,test accuracy,seeds,note\n"
    "fairseq,pretrained,0.583,3,\n"
    'fairseq,random,0.092,12,"says ""no"", twice"\n'
    "transformers,pretrained,0.602,5,<b>a|b</b> & $x_1$ *y* `z` \\n #%~^{}\n"
    "transformers,random,,1,bold\n"
)


PAIRS_CSV = (
    "framework,mean (%),sd (points),low (points),high (points),text\n"
    "fairseq,58.3,2.34,1.2,4.6,a\n"
    "transformers,9.2,,,,one two three\n"
    "another,,,-2,0.5,3.33\n"
)


def pasted(page: Page) -> str:
    """What the clipboard holds."""
    page.evaluate("document.body.append(Object.assign(document.createElement('textarea'), { id: 'pasted' }))")
    page.locator("#pasted").press("Control+V")
    return page.locator("#pasted").input_value()


@pytest.mark.parametrize("clipboard", [True, False])
def test_a_table_copies_as_csv(visit, clipboard):
    """With the clipboard's own interface, and where a page must not use it."""
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    if not clipboard:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button = page.get_by_role("button", name="Copy Table 1 as CSV")
    button.focus()
    page.keyboard.press("Enter")
    expect(table(page).get_by_role("status")).to_have_text(f"Copied, {len(ACCURACIES.rows)} rows")
    assert button.evaluate("button => button === document.activeElement")
    assert pasted(page) == CSV


def test_one_column_of_people_is_copied_as_several(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    pairs = page.locator("#pairs")
    pairs.get_by_role("button", name="Copy").click()
    expect(pairs.get_by_role("status")).to_have_text("Copied, 3 rows")
    assert pasted(page) == PAIRS_CSV


def test_a_column_that_is_copied_as_several_sorts_by_its_first_value(visit):
    pairs = visit().locator("#pairs")
    pairs.get_by_role("button", name="interval").click()
    assert pairs.locator("td:nth-child(3)").all_text_contents() == ["−2.0 to +0.5", "+1.2 to +4.6", "–"]


# --- themes and paper ---------------------------------------------------------------------------------------


def test_both_themes_have_colours_of_their_own_and_enough_contrast(visit):
    light, dark = (visit(color_scheme=scheme) for scheme in ("light", "dark"))
    for selector in ("main > p", "figcaption", "main a", "caption", "nav a", ".subtitle"):
        by_day, by_night = colours(light, selector), colours(dark, selector)
        assert by_day[0] != by_night[0]
        assert by_day[1] != by_night[1]
        assert contrast(*by_day) >= 4.5
        assert contrast(*by_night) >= 4.5


def test_the_theme_can_be_chosen(visit):
    page = visit(color_scheme="dark")
    dark = colours(page, "h1")
    page.get_by_role("button", name="Light theme").press("Enter")
    assert colours(page, "h1") == colours(visit(color_scheme="light"), "h1") != dark
    page.get_by_role("button", name="Dark theme").click()
    assert colours(page, "h1") == dark


def test_the_white_of_a_figure_is_softened_on_a_dark_page(visit):
    whites, blacks = [], []
    for scheme in ("light", "dark"):
        picture = visit(color_scheme=scheme).locator("figure img").first.screenshot()
        levels = Image.open(io.BytesIO(picture)).convert("L").getextrema()
        blacks.append(levels[0])
        whites.append(levels[1])
    assert whites[0] == 255
    assert 180 < whites[1] < 225
    assert max(blacks) < 30


@pytest.mark.parametrize("script", [True, False])
def test_paper_shows_everything_in_black_and_no_controls(visit, script):
    page = visit(PAPER, color_scheme="dark", java_script_enabled=script)
    page.emulate_media(media="print")
    assert contrast(*colours(page, "h1")) > 10
    assert colours(page, "h1")[1] == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert page.get_by_role("button", name="Copy").count() == 0
    assert page.locator("html").evaluate("element => element.scrollWidth") <= PAPER
    assert page.locator("main details pre").evaluate(
        "element => element.checkVisibility({ contentVisibilityAuto: true })"
    )


def test_on_paper_sentences_beside_names_keep_room(visit):
    page = visit(PAPER)
    page.emulate_media(media="print")
    widths = page.locator("#notes td.long").evaluate_all("all => all.map(cell => cell.clientWidth)")
    assert len(widths) == 3
    assert min(widths[0], widths[2]) >= 120, "pixels, of 673: not one word a line"


def test_what_is_folded_is_opened_for_paper_and_folded_again(visit):
    page = visit()
    opened = "() => [...document.querySelectorAll('main details')].map(details => details.open)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(opened) == [True]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(opened) == [False]


def test_the_page_prints_to_pdf(visit, tmp_path):
    path = tmp_path / "report.pdf"
    visit().pdf(path=path, prefer_css_page_size=True)
    pages = re.findall(rb"/Type /Page\b.*?/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", path.read_bytes(), re.DOTALL)
    assert 5 <= len(pages) <= 20
    assert {(round(float(width)), round(float(height))) for width, height in pages} == {(595, 842)}, "A4"


# --- accessibility ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", tiered(["light", "dark"], "light"))
@pytest.mark.parametrize("width", tiered([375, 1280], 375))
def test_axe_finds_no_violation(visit, width, scheme):
    page = visit(width, color_scheme=scheme)
    open_details(page)
    found = Axe().run(page)
    assert found.response["passes"], "axe ran"
    assert [f"{each['impact']}: {each['help']}" for each in found.response["violations"]] == []
