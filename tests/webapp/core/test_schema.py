"""Forms from pydantic models: what is left empty stays what it was."""

from pydantic import BaseModel

from webapp.core.schema import SchemaForm


class Inner(BaseModel):
    number: int


class Outer(BaseModel):
    inner: Inner | None = None
    names: list[str] = []


def test_what_may_be_absent_stays_absent_and_an_empty_list_empty():
    form = SchemaForm({"inner": None, "names": []}, Outer.model_json_schema(), {})
    assert form.is_valid()
    assert form.document() == {"inner": None, "names": []}


def test_what_is_absent_can_be_written_as_json():
    form = SchemaForm({"inner": None, "names": []}, Outer.model_json_schema(), {'f-["inner"]': '{"number": 3}'})
    assert form.is_valid()
    assert form.document() == {"inner": {"number": 3}, "names": []}
