"""RLY030: syntax that irscope accepts and TVM rejects."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.formats.relay.dialect import RELAY
from irscope.formats.relay.strict import liberties
from irscope.lint import Context, Fixture, Rule
from irscope.source import Finding, Severity


class StrictRelay(Rule):
    """The text uses syntax that TVM's own parser rejects.

    ## What it does
    Reports what irscope accepts beyond Relay 0.0.5: a missing header, `return`, names bound without `let`, bindings without `;`, lists in
    parentheses, floats without a suffix, names with dots or colons, named dimensions, escapes in strings, `#` comments, attributes without
    a name, irscope's own primitives. It is a demand: `--strict-relay` or `--select strict-relay` makes it, `--all` does not.

    ## Why is this bad?
    TVM (0.7 to 0.19) rejects the text.

    ## Use instead
    ```
    let %hidden = nn.relu(%x);
    %hidden
    ```

    ## Known false positives
    None known, but some older versions of TVM accept part of this syntax.
    """

    code, name, severity, default = "RLY030", "strict-relay", Severity.WARNING, False
    timed = False
    option = "--strict-relay"
    dialect = RELAY
    bad = (
        Fixture("relay", '#[version = "0.0.5"]\ndef @main(%x: float32) {\n  %0 = nn.relu(%x);\n  return %0;\n}\n'),
        Fixture("relay", '#[version = "0.0.5"]\ndef @main(%x: float32) {\n  %hidden = nn.relu(%x);\n  %hidden\n}\n'),
    )
    good = (
        Fixture("relay", '#[version = "0.0.5"]\ndef @main(%x: float32) {\n  %0 = nn.relu(%x);\n  let %y = add(%0, 1.5f);\n  %y\n}\n'),
        Fixture("hlo", "HloModule m\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n"),
    )

    def check(self, context: Context) -> Iterator[Finding]:
        module = context.module
        for liberty in liberties(module) if not module.is_primitive and module.source.text else ():
            said = f"TVM does not read this: {liberty.said}"
            yield Finding(self.code, self.name, self.severity, said, module.source, liberty.offset, liberty.length, (), liberty.instead)
