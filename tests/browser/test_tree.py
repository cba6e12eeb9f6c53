"""The tree of pictures: looked at, walked by keys, compared in, cut and mended, on a phone as well."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import begin_anew, composer, draw_twice, expect_loaded, open_at, place_of, say
from tests.page.journeys import step

# #1 a drawing, #1b it warmer, #1c it cropped, #1d that one brighter; #2 another drawing.
NAMES = ["#1", "#2", "#1b", "#1c", "#1d"]


def open_tree(page: Page, address: str, tab: str = "Tree") -> Locator:
    open_at(page, address)
    expect(page.locator("#chat .acts").first).to_be_attached()
    page.evaluate("window.aivista.tabs.show('tree')")
    expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    tree = page.locator("#tr-pane .tr-scroll")
    expect(tree.locator(".tr-node")).to_have_count(5)
    return tree


def node(tree: Locator, handle: str) -> Locator:
    return tree.locator(f'.tr-node[data-handle="{handle}"]')


def choose(page: Page, tree: Locator, handle: str, item: str) -> None:
    node(tree, handle).get_by_role("button", name=f"Actions for {handle}").click()
    page.get_by_role("menuitem", name=item).click()


def it_works_on_a_phone_in_chinese(phone: Page, grown: str) -> None:
    tree = open_tree(phone, grown, "谱系")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    node(tree, "#1c").get_by_role("button", name="对 #1c 的操作").tap()
    items = phone.get_by_role("menuitem")
    assert min(items.evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")) >= 40
    phone.get_by_role("menuitem", name="从这里编辑").tap()
    expect(phone.locator("#ctx .ctx b")).to_have_text("#1c")
    expect(composer(phone)).to_be_visible()
    targets = tree.locator(".tr-more").evaluate_all("all => all.map(one => one.offsetHeight || 40)")
    assert min(targets) >= 40


def test_the_tree_is_read_and_walked_its_pictures_are_put_to_use_and_a_branch_is_cut_and_mended(
    page: Page, phone: Page, studio: PageProcess
) -> None:
    changes = ("Make it much warmer", "#1"), ("Crop it to 4:5", "#1"), ("Make it brighter", "#1c")
    grown = studio.sketched("draw a red fox", *changes, "draw a boat on a lake")
    tree = open_tree(page, grown)
    with step("every picture stands below the one it was made from"):
        assert sorted(tree.locator(".tr-node").evaluate_all("all => all.map(one => one.dataset.handle)")) == sorted(
            NAMES
        )
        for picture in tree.locator("img").all():
            expect_loaded(picture)
        tops = {handle: node(tree, handle).evaluate("one => one.offsetTop") for handle in NAMES}
        assert tops["#1"] < tops["#1b"] == tops["#1c"] < tops["#1d"]
        expect(node(tree, "#1b").locator(".tr-open")).to_have_accessible_name("#1b, warmth +60")
    with step("a click opens a picture, and the way to it is thick when one comes back"):
        expect(tree.locator("path.path")).to_have_count(0)
        node(tree, "#1d").get_by_role("button", name="#1d, ").click()
        expect(page.locator("#canvas .cv-bar b")).to_have_text("#1d")
        page.get_by_role("tab", name="Tree").click()
        expect(node(tree, "#1d").get_by_role("button", name="#1d, ")).to_have_attribute("aria-current", "true")
        expect(tree.locator("path.path")).to_have_count(2)
    with step("the menu is opened, walked and left by keys"):
        node(tree, "#1c").locator(".tr-open").focus()
        page.keyboard.press("Shift+F10")
        expect(page.get_by_role("menuitem", name="Open")).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(page.get_by_role("menuitem", name="Delete branch")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("menuitem", name="Open")).to_be_hidden()
        expect(node(tree, "#1c").locator(".tr-more")).to_be_focused()
        expect(tree).to_be_visible()
    with step("the arrow keys walk the tree, and Enter opens a picture"):
        node(tree, "#1").locator(".tr-open").focus()
        for key, handle in (
            ("ArrowDown", "#1b"),
            ("ArrowRight", "#1c"),
            ("ArrowDown", "#1d"),
            ("ArrowUp", "#1c"),
            ("ArrowLeft", "#1b"),
            ("ArrowUp", "#1"),
            ("ArrowUp", "#1"),
            ("End", "#1d"),
        ):
            page.keyboard.press(key)
            expect(node(tree, handle).locator(".tr-open")).to_be_focused()
        expect(tree.locator('.tr-open[tabindex="0"]')).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator("#canvas .cv-bar b")).to_be_visible()
        page.get_by_role("tab", name="Tree").click()
    with step("two pictures are chosen and compared"):
        choose(page, tree, "#1b", "Compare with…")
        expect(page.locator(".tr-pick")).to_contain_text("Choose a picture to compare with #1b.")
        page.keyboard.press("Escape")
        expect(page.locator(".tr-pick")).to_be_hidden()
        choose(page, tree, "#1b", "Compare with…")
        node(tree, "#1d").get_by_role("button", name="#1d, ").click()
        stage = page.locator("#canvas .cmp")
        expect(stage).to_have_attribute("data-pair", "#1b #1d")
        expect(stage).to_be_visible()
        page.get_by_role("tab", name="Tree").click()
    with step("any picture is gone on from"):
        choose(page, tree, "#1b", "Edit from here")
        expect(page.locator("#ctx .ctx b")).to_have_text("#1b")
        expect(composer(page)).to_be_focused()
    tree = open_tree(page, grown)
    with step("it is zoomed, dragged, and keeps its place"):
        before = place_of(node(tree, "#1"))
        page.get_by_role("button", name="Zoom in").last.click()
        page.get_by_role("button", name="Zoom in").last.click()
        closer = place_of(node(tree, "#1"))
        assert closer["width"] > before["width"] * 1.4
        box = place_of(tree)
        x, y = box["x"] + box["width"] - 30, box["y"] + box["height"] - 30
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 120, y - 90, steps=5)
        page.mouse.up()
        place = tree.evaluate("pane => [pane.scrollLeft, pane.scrollTop]")
        assert place != [0, 0]
        page.get_by_role("tab", name="Canvas").click()
        page.evaluate("performance.clearResourceTimings()")
        page.get_by_role("tab", name="Tree").click()
        # The tree is asked for anew and comes as it was.
        page.wait_for_function("performance.getEntriesByType('resource').some(one => one.name.includes('/tree.show'))")
        expect(tree.locator(".tr-node")).to_have_count(5)
        draw_twice(page)
        assert tree.evaluate("pane => [pane.scrollLeft, pane.scrollTop]") == place
        page.get_by_role("button", name="Fit").last.click()
        assert tree.evaluate("pane => pane.scrollWidth <= pane.clientWidth")
    with step("a branch is deleted after a question, and brought back"):
        choose(page, tree, "#1c", "Delete branch")
        asked = page.get_by_role("alertdialog")
        expect(asked).to_contain_text("Delete #1c and the picture made from it?")
        asked.get_by_role("button", name="Cancel").click()
        expect(asked).to_have_count(0)
        expect(tree.locator(".tr-node")).to_have_count(5)
        node(tree, "#1c").locator(".tr-open").focus()
        page.keyboard.press("Delete")
        expect(asked.get_by_role("button", name="Delete")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text("2 pictures deleted.")
        expect(tree.locator(".tr-node")).to_have_count(3)
        page.locator("#toast").get_by_role("button", name="Undo").click()
        expect(page.locator("#toast")).to_contain_text("2 pictures are back.")
        expect(tree.locator(".tr-node")).to_have_count(5)
    with step("it is empty in a new conversation, and grows when a turn ends"):
        begin_anew(page)
        page.evaluate("window.aivista.tabs.show('tree')")
        expect(page.locator("#tree")).to_contain_text("No pictures yet")
        say(page, "draw a whale")
        expect(page.locator("#tr-pane .tr-node")).to_have_count(1)
        expect(page.locator("#tr-pane .tr-node")).to_contain_text("draw a whale")
    it_works_on_a_phone_in_chinese(phone, grown)
