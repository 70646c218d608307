from __future__ import annotations

import pytest

from privrisk_spark.stages.publishing import contracts


def test_views_share_compiled_templates_and_render_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVRISK_FAST", "1")
    contracts.prepare()
    import jinja2
    from great_expectations.render.view import DefaultJinjaPageView

    from privrisk_spark.engine.fast.data_docs import IndexPageView, PageView

    compiled = []
    usual = jinja2.Environment.compile

    def compile_counted(self: jinja2.Environment, *given: object, **named: object) -> object:
        compiled.append(given[1])
        return usual(self, *given, **named)  # type: ignore[call-overload]

    first = PageView().env.get_template("favicon.j2")
    monkeypatch.setattr(jinja2.Environment, "compile", compile_counted)
    again = PageView().env.get_template("favicon.j2"), IndexPageView().env.get_template("favicon.j2")
    assert not compiled
    theirs = DefaultJinjaPageView().env.get_template("favicon.j2")
    assert compiled
    pages = [
        one.render(renderer_type="ValidationResultsPageRenderer", expectation_suite_name="a")
        for one in (theirs, first, *again)
    ]
    assert len(set(pages)) == 1
    assert pages[0].strip()


def test_a_template_that_changed_is_compiled_again() -> None:
    contracts.prepare()
    import jinja2

    from privrisk_spark.engine.fast.data_docs import _Compiled

    compiled = _Compiled()
    for text in ("one", "two"):
        environment = jinja2.Environment(loader=jinja2.DictLoader({"page": text}), bytecode_cache=compiled)
        assert environment.get_template("page").render() == text
