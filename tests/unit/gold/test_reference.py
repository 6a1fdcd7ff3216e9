"""The reference that improves itself: evidence order, order of grading, rejection, and the file it lives in."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tsuka.errors import GoldReferenceError
from pytest_tsuka.gold import Finding, Reference, consolidate, read_reference, reject, write_reference
from pytest_tsuka.gold.reference import baseline, edit, undo

OUTPUT: dict[str, Any] = {"year": 2000, "title": "Old", "cast": [{"name": "Ada"}, {"name": "Bob"}], "blank": None}


def reference(**more: Any) -> Reference:
    return Reference(output=copy.deepcopy(OUTPUT), verified=True, **more)


def finding(value: Any, model: str = "a", evidence: Any = "better", path: str = "title", pass_id: str = "1") -> Finding:
    return Finding(path=path, value=value, evidence=evidence, model=model, pass_id=pass_id)


def test_a_finding_becomes_a_revision() -> None:
    """With the value before, the value now, the models behind it and why."""
    gold = reference()
    (made,) = consolidate(gold, [finding("New", "a"), finding("new", "b")])
    assert gold.output["title"] == "New"
    assert (made.before, made.after, made.evidence, made.models) == ("Old", "New", "better", ["a", "b"])
    assert consolidate(gold, [finding("NEW", "c")]) == []
    assert gold.revisions[0].models == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("first", "then", "after"),
    [
        ([finding("X", "a")], [finding("Y", "b"), finding("Y", "c")], "Y"),  # more models
        ([finding("X", "a"), finding("X", "b")], [finding("Y", "c")], "X"),  # one more opinion
        ([finding("X", "a"), finding("X", "b")], [finding("Y", "c", "judged_wrong")], "Y"),
        ([finding("X", "a", "judged_wrong")], [finding("Y", "b", "samples")], "Y"),
        ([finding("X", "a", "samples")], [finding("Y", m, "judged_wrong") for m in "bcd"], "X"),
        ([finding("X", "a")], [finding("X", "a", pass_id="2"), finding("Y", "b"), finding("Y", "c")], "Y"),
    ],
)
def test_only_stronger_evidence_replaces(first: list[Finding], then: list[Finding], after: str) -> None:
    """Samples, then a verdict that it is wrong, then more distinct models over all passes; a model counts once."""
    gold = reference()
    consolidate(gold, first)
    consolidate(gold, then)
    assert gold.output["title"] == after


findings = st.builds(
    finding,
    st.sampled_from(["X", "x", "Y", "2001", 2001, "Z"]),
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["samples", "judged_wrong", "better"]),
    st.sampled_from(["title", "year", "cast[1].name"]),
)


@given(st.lists(findings, max_size=10), st.data())
def test_the_order_of_grading_never_matters(all_findings: list[Finding], data: Any) -> None:
    """One by one in any order, in any grouping, or all together: the same reference."""
    together = reference()
    consolidate(together, all_findings)
    shuffled = data.draw(st.permutations(all_findings))
    apart = reference()
    while shuffled:
        size = data.draw(st.integers(1, len(shuffled)))
        consolidate(apart, shuffled[:size])
        shuffled = shuffled[size:]
    assert apart.output == together.output
    assert {r.path: (r.after, r.models) for r in apart.revisions} == {
        r.path: (r.after, r.models) for r in together.revisions
    }


def test_a_blank_is_filled_and_a_place_is_made() -> None:
    gold = reference()
    consolidate(gold, [finding(7, path="blank", evidence="filled_blank"), finding("x", path="deep.new[0].leaf")])
    assert gold.output["blank"] == 7
    assert gold.output["deep"] == {"new": [{"leaf": "x"}]}


def test_a_rejected_path_stays_out() -> None:
    """The value before any pass comes back, and no later pass touches it."""
    gold = reference()
    consolidate(gold, [finding("X", "a")])
    consolidate(gold, [finding("Y", m) for m in "bc"])
    undone = reject(gold, ["title"])
    assert [r.after for r in undone] == ["X", "Y"]
    assert gold.output["title"] == "Old"
    assert consolidate(gold, [finding("Z", m, "samples") for m in "abcd"]) == []
    assert gold.output == OUTPUT
    with pytest.raises(GoldReferenceError, match="no pass has changed 'year'"):
        reject(gold, ["year"])


def test_the_file(tmp_path: Path) -> None:
    """Written and read back whole; what is wrong with one is said with its place."""
    file = tmp_path / "film.reference.json"
    with pytest.raises(GoldReferenceError, match="does not exist"):
        read_reference(file)
    gold = reference()
    consolidate(gold, [finding("New")])
    write_reference(file, gold)
    assert read_reference(file) == gold
    file.write_text(json.dumps({"output": {}, "verifed": True}))
    with pytest.raises(GoldReferenceError, match="verifed: Extra inputs"):
        read_reference(file)
    write_reference(file, gold)
    with pytest.raises(GoldReferenceError, match="breaks the scenario's own schema: year"):
        read_reference(file, {"properties": {"year": {"type": "string"}}})


# --- people and passes ---------------------------------------------------------------------


def test_what_people_left_is_the_base() -> None:
    """Standing revisions undone; a person's values, and what followed from them, stay."""
    gold = reference()
    consolidate(gold, [finding("New"), finding(1999, path="year")])
    assert gold.output["title"] == "New"
    assert baseline(gold) == OUTPUT
    edit(gold, {**gold.output, "year": 2001})
    assert baseline(gold) == {**OUTPUT, "year": 2001}
    consolidate(gold, [finding("Newer", "b"), finding("Newer", "c")])
    assert gold.output["year"] == 2001, "what was found against the old value is no word against the new one"
    assert baseline(gold) == {**OUTPUT, "year": 2001}


@given(st.lists(findings, max_size=8))
def test_passes_never_make_a_new_edition(made: list[Finding]) -> None:
    """Whatever they find; a rejection and an edit do."""
    gold = reference()
    before = gold.edition
    consolidate(gold, made)
    assert gold.edition == before
    assert baseline(gold) == OUTPUT
    if gold.standing:
        reject(gold, [next(iter(gold.standing))])
        assert gold.edition != before
    edited = reference()
    edit(edited, {**OUTPUT, "title": "By hand"})
    assert edited.edition != before


def test_an_edit_in_an_editor_is_a_persons_too(tmp_path: Path) -> None:
    """Over a pass's revision it stands, and old findings do not bring the old value back."""
    gold = reference()
    consolidate(gold, [finding("New", "a"), finding("New", "b"), finding(1999, path="year")])
    file = tmp_path / "x.reference.json"
    write_reference(file, gold)
    file.write_text(file.read_text().replace('"title": "New"', '"title": "By hand"', 1))
    read = read_reference(file)
    assert read.output["title"] == "By hand"
    assert [r.evidence for r in read.revisions if r.path == "title"] == ["better", "person"]
    consolidate(read, [finding(1999, "c", path="year")])
    assert read.output["title"] == "By hand"
    assert read.output["year"] == 1999
    assert baseline(read) == {**OUTPUT, "title": "By hand"}


def test_undo() -> None:
    """Of a revision, of a rejection, of a person's edit; never of what a later entry rests on."""
    gold = reference()
    consolidate(gold, [finding("New", "a")])
    consolidate(gold, [finding("Newer", "b"), finding("Newer", "c")])
    with pytest.raises(GoldReferenceError, match="not the last word"):
        undo(gold, 1)
    undo(gold, 2)
    assert gold.output["title"] == "New"
    assert gold.rejected_paths == ["title"]
    consolidate(gold, [finding("Newest", m) for m in "abc"])
    assert gold.output["title"] == "New"
    undo(gold, 2)
    assert (gold.output["title"], gold.rejected_paths) == ("Newer", [])
    edit(gold, {**gold.output, "year": 1})
    undo(gold, 3)
    assert gold.output["year"] == 2000
    assert len(gold.revisions) == 2


def test_an_edit_of_a_list_is_one_change() -> None:
    """Its items move, so what passes changed inside it is the person's from then on."""
    gold = reference()
    consolidate(gold, [finding("Bea", path="cast[1].name")])
    made = edit(gold, {**gold.output, "cast": [{"name": "Bea"}]})
    assert [r.path for r in made] == ["cast"]
    assert gold.standing == {}
    assert baseline(gold) == {**OUTPUT, "cast": [{"name": "Bea"}]}


def test_the_judge_may_turn_against_the_value_that_leads() -> None:
    """However many gave it; not against what samples prove; without a judge the count decides."""
    claims = [finding("X", "a"), finding("X", "b"), finding("Y", "c")]

    def against(path: str, leading: Any, other: Any) -> bool:
        return bool(leading == "X" and other == "Y")

    gold, counted, proven = reference(), reference(), reference()
    consolidate(gold, claims, duel=against)
    assert (gold.output["title"], gold.revisions[0].evidence, gold.revisions[0].models) == ("Y", "judged_wrong", ["c"])
    consolidate(counted, claims)
    assert counted.output["title"] == "X"
    consolidate(proven, [*claims, finding("X", "d", "samples")], duel=against)
    assert proven.output["title"] == "X"
