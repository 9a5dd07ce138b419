"""Forms that the other journeys do not pass through, each sent by a real browser: accounts, datasets, codebooks, runs.

The browser brings session, CSRF token and origin by itself; a form that lacks one of them would not get through.
"""

import json
import re
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.browser.at_table import set_up
from tests.webapp.scenarios.files import casino

pytestmark = pytest.mark.slow


@pytest.fixture
def name():
    """A name that no other test has used."""
    return f"n{uuid4().hex[:8]}"


def file(text, called="own.json"):
    return {"name": called, "mimeType": "application/json", "buffer": text.encode()}


def test_an_account_from_its_beginning_to_its_end(visit, name):
    page = visit().page
    page.goto("/accounts/login/")
    page.get_by_role("link", name="Create an account").click()
    page.locator("[name=username]").fill(name)
    for number in (1, 2):
        page.locator(f"[name=password{number}]").fill("salt and vinegar 7")
    page.locator("main button[type=submit], main form button").first.click()
    expect(page.locator("header.bar")).to_contain_text(name)
    expect(page.locator("header.bar")).not_to_contain_text("Runs")

    page.goto("/accounts/")
    page.get_by_label("Name").fill("notebook")
    page.get_by_role("button", name="Create a key").click()
    assert len(page.locator("code.token").inner_text()) > 20
    page.get_by_role("button", name="Revoke").click()
    expect(page.locator("main")).not_to_contain_text("notebook…")

    page.get_by_role("link", name="Change your password").click()
    page.locator("[name=oldpassword]").fill("salt and vinegar 7")
    for number in (1, 2):
        page.locator(f"[name=password{number}]").fill("pepper and oil 8")
    page.locator("main form button").first.click()
    expect(page.get_by_role("status")).to_contain_text("Password successfully changed")
    page.goto("/")
    page.locator("header.bar summary", has_text=name).click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.locator("[name=login]").fill(name)
    page.locator("[name=password]").fill("pepper and oil 8")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("header.bar")).to_contain_text(name)


def test_a_form_that_is_pressed_twice_is_sent_once(visit):
    page = visit("pia").page
    page.goto("/play/new/?game=kuhn_poker")
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.get_by_role("button", name="Yes: start the game").dblclick()
    page.wait_for_url(re.compile(r"/play/\d+/$"))
    assert len(sent) == 1


def test_an_admin_makes_a_player_an_annotator_and_back(visit):
    page = visit("admin").page
    for role in ("annotator", "player"):
        page.goto("/accounts/people/")
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="ben", exact=True))
        row.get_by_role("combobox").select_option(role)
        row.get_by_role("button", name="Save").click()
        expect(row.get_by_role("combobox")).to_have_value(role)


def test_a_wrong_file_is_refused_with_its_place_and_stores_nothing(visit, name):
    page = visit("rosa").page
    page.goto("/datasets/import/")
    page.get_by_label("Format").select_option("casino")
    broken = json.loads(casino())
    del broken[0]["participant_info"]["mturk_agent_1"]["value2issue"]
    page.get_by_label("File").set_input_files(file(json.dumps(broken)))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Read it").click()
    expect(page.locator("#import-status")).to_contain_text("nothing can be stored")
    expect(page.locator("#state tbody")).to_contain_text("value2issue")
    expect(page.get_by_role("button", name="Store it")).to_have_count(0)
    page.goto(f"/datasets/?q={name}")
    expect(page.locator("#results")).to_contain_text("Nothing matches")


def test_a_dataset_is_imported_edited_forked_and_deleted(visit, name):
    visitor = visit("rosa")
    page = visitor.page
    page.goto("/datasets/import/")
    page.get_by_label("File").set_input_files(file(casino()))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Read it").click()
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("status")).to_contain_text("nothing was stored")
    page.goto("/datasets/import/")
    page.get_by_label("File").set_input_files(file(casino()))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Read it").click()
    page.get_by_role("button", name="Store it").click()
    page.locator("#scenarios a").first.click()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("deal · story").fill("Two sailors share a raft.")
    expect(page.locator("#preview")).to_contain_text("Two sailors share a raft.")
    page.get_by_label("Note").fill("at sea")
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.locator("main")).to_contain_text(f"{name} v2")

    page.goto(f"/datasets/{name}/v2/")
    expect(page.locator("#main dl.facts")).to_contain_text("at sea")
    page.get_by_text("Fork", exact=True).click()
    page.locator("details[open]").get_by_label("Name").fill(f"{name}-fork")
    page.get_by_role("button", name="Copy to a new dataset").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{name}-fork v1")
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{name}-fork v1")
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Datasets")
    assert len(asked) == 2


def test_a_codebook_is_made_and_gets_a_second_version(visit, name):
    page = visit("rosa").page
    page.goto("/judgments/codebooks/new/")
    page.get_by_label("Title").first.fill(name)
    first = page.locator("fieldset").first
    first.get_by_label("Value", exact=True).select_option("scale")
    for label, value in {"Name": "fairness", "Title": "Fairness", "Low": "0", "High": "4"}.items():
        first.get_by_label(label).fill(value)
    first.get_by_label("Definition").fill("Was it fair?")
    first.get_by_label("Anchors").fill("0 = no\n4 = yes")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.get_by_role("button", name="Edit").click()
    page.locator("fieldset").first.get_by_label("High").fill("5")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("v2")


def test_a_run_is_stopped_cloned_and_deleted(visit, tiny):
    visitor = visit("rosa")
    page = visitor.page
    page.goto("/runs/new/?preset=quick")
    page.get_by_label("Name", exact=True).fill("to be stopped")
    page.get_by_label("Place").select_option("gpu")  # nobody takes it, so it stays queued
    page.get_by_role("button", name="Start the run").first.click()
    expect(page.locator("#run-header")).to_contain_text("Waiting for a worker")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#run-header .state")).to_have_text("stopped")
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("to be stopped again")
    page.go_back()
    page.get_by_role("button", name="Delete this run…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be brought back")
    dialog.get_by_role("button", name="Delete").click()
    page.wait_for_url("**/runs/")
    expect(page.locator("main")).to_contain_text("to be stopped is deleted")


def test_a_wrong_configuration_is_marked_where_it_is_wrong(visit, tiny):
    visitor = visit("rosa")
    page = visitor.page
    page.goto("/runs/new/?preset=quick")
    page.locator("summary", has_text=re.compile(r"^\s*learn\b")).click()
    page.get_by_label("learn · lr", exact=True).fill("-1")
    page.locator("form").last.evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Start the run").first.click()
    expect(page.get_by_role("alert").first).to_contain_text("The run was not started")
    assert "lr" in page.locator(".field", has=page.locator("[role=alert]")).last.inner_text()
    visitor.forget("400")


def copy(page, link):
    """Press Copy with the clipboard's interface, without it (as over plain HTTP), and where nothing may copy."""
    button, status = page.get_by_role("button", name="Copy"), page.locator(".copy [role=status]")
    page.evaluate("window.clipboard = navigator.clipboard")
    button.click()
    expect(status).to_have_text("Copied.")
    assert page.evaluate("clipboard.readText()") == link
    page.evaluate("clipboard.writeText('something else')")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button.click()
    assert page.evaluate("clipboard.readText()") == link
    page.evaluate("document.execCommand = () => false")
    button.click()
    expect(status).to_have_text(re.compile("^Selected"))
    assert page.evaluate("getSelection().toString()") == link


def test_a_guest_takes_the_seat_that_the_link_keeps(visit):
    host = visit("pia", permissions=["clipboard-read", "clipboard-write"])
    set_up(host.page, "open")
    table = host.page.url
    host.page.get_by_role("button", name=re.compile("Guest link")).click()
    link = host.page.locator("code.token").inner_text()
    copy(host.page, link)
    guest = visit()
    guest.page.goto(link)
    guest.page.get_by_label("Your name at the table").fill("Zoe")
    guest.page.get_by_role("button", name="Sit down").click()
    guest.page.get_by_role("button", name=re.compile("^No")).click()
    expect(guest.page.locator(".turn")).to_have_text(re.compile("Your turn|is thinking"))
    host.page.goto(table)
    host.page.once("dialog", lambda dialog: dialog.accept())
    host.page.locator(".hosting summary").click()
    host.page.get_by_role("button", name="Close the table").click()
    expect(guest.page.locator("main")).to_contain_text("ended without a result")


def test_a_remote_model_outside_the_list_is_refused_in_place(visit):
    visitor = visit("admin")
    page = visitor.page
    page.goto("/deployments/")
    form = page.locator("form", has=page.get_by_role("button", name="Add it"))
    for label, value in {"Name": "far", "Address": "https://models.example/v1", "Model": "m"}.items():
        form.get_by_label(label, exact=True).fill(value)
    form.get_by_label("Name of its key").fill("FAR_API_KEY")
    form.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("alert").first).to_contain_text("MODEL_ADDRESSES")
    visitor.forget("400")


def test_a_run_that_is_refused_shows_where_and_an_added_opponent_costs_no_entry(visit, tiny, name):
    visitor = visit("rosa", viewport={"width": 360, "height": 740})
    page = visitor.page
    page.goto("/runs/new/?preset=negotiation")
    page.get_by_role("link").filter(has=page.get_by_text("Quick trial", exact=True)).click()
    expect(page.locator("#id_run-name")).to_be_in_viewport()
    page.locator("#id_run-name").fill(name)
    page.locator("#section-opponents summary").click()
    page.get_by_role("button", name="Add an opponent").click()
    expect(page.get_by_label("opponents 1 · source")).to_be_in_viewport()
    expect(page.locator("#id_run-name")).to_have_value(name)
    page.get_by_label("opponents 1 · source").fill("nobody")
    page.get_by_role("button", name="Start the run").last.click()
    expect(page.get_by_label("opponents 1 · source")).to_be_focused()
    expect(page.get_by_label("opponents 1 · source")).to_be_in_viewport()
    page.get_by_role("alert").first.get_by_role("link", name="opponents 1 · source").click()
    expect(page.get_by_label("opponents 1 · source")).to_be_in_viewport()
    expect(page.locator("#id_run-name")).to_have_value(name)
    visitor.forget("400")
