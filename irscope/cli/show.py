"""``irscope show``: a summary and a folded tree of dumps, their text, and drawings."""
from __future__ import annotations

import click

from irscope.cli.input import binding_options, from_option, once_stdin

FORMATS = ("tree", "text", "json", "dot", "svg", "png", "pdf", "html")
SUFFIXES = {".txt": "text", ".json": "json", ".dot": "dot", ".gv": "dot", ".svg": "svg", ".png": "png", ".pdf": "pdf", ".html": "html",
            ".htm": "html", ".hlo": "text"}
COLOURS = ("class", "cost", "dtype", "fusion", "findings")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "format_", type=click.Choice(FORMATS), default=None,
              help="What to print (default: by the suffix of -o, else tree).")
@click.option("-o", "--output", default="-", metavar="FILE",
              help="Write there; its suffix chooses the format (.svg .png .html .json .dot).")
@click.option("--around", metavar="NODE", help="Only what stands around a node: %name, or graph/name.")
@click.option("--radius", type=click.IntRange(0), default=2, show_default=True, help="How many steps around it.")
@click.option("--between", nargs=2, metavar="A B", help="Only what lies on the paths between two nodes.")
@click.option("--where", metavar="QUERY", help="Only the nodes that a query picks: 'op=dot and bytes>1MB'.")
@click.option("--graph", "graph_", metavar="NAME", help="Look at this computation instead of the entry.")
@click.option("--module", "module_", metavar="NAME", help="Which module of a folder, or of a text that holds several.")
@click.option("--pass", "pass_", metavar="PASS|N", help="Of a log of passes: what this one changed and gave, or the N-th snapshot.")
@click.option("--depth", type=click.IntRange(0), default=None, metavar="N", help="How many levels of the tree, or of a drawing, to open.")
@click.option("--by", type=click.Choice(["auto", "scope", "graph"]), default="auto", show_default=True,
              help="Tree by the scopes of the user's program, or by computation.")
@click.option("--color-by", type=click.Choice(COLOURS), default="class", show_default=True, help="What the colours of a drawing mean.")
@click.option("--lint", "lint", is_flag=True, help="Judge it too, and mark what the rules find: in drawings, on the page, above the tree.")
@click.option("--policy", metavar="NAME", help="In a drawing, frame the kernels that this fusion policy makes (irscope list policies).")
@click.option("--device", metavar="NAME", help="With --policy xla-gpu: h100, a100, b200, or a file with XLA's target text.")
@click.option("--dark", is_flag=True, help="Draw on a dark ground.")
@click.option("--max-nodes", type=click.IntRange(1), default=None, metavar="N",
              help="How many boxes a drawing may have before it is folded.")
@click.option("--all", "all_", is_flag=True, help="No limit on the rows of trees and lists.")
@click.option("--width", type=click.IntRange(40), default=None, metavar="N", help="Columns (default: the terminal's).")
@from_option
@binding_options
def command(files: tuple[str, ...], format_: str | None, output: str, around: str | None, radius: int, between: tuple[str, str] | None,
            where: str | None, graph_: str | None, module_: str | None, pass_: str | None, depth: int | None, by: str, color_by: str,
            lint: bool, policy: str | None, device: str | None, dark: bool, max_nodes: int | None, all_: bool, width: int | None,
            from_: str | None, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str]) -> int:
    """Summary and tree of a dump; also text, DOT, SVG, PNG, HTML and json.

    A folder written by XLA's --xla_dump_to shows its modules and what each pass changed; so does a log of TVM's passes.

    \b
    Examples:
      irscope show model.hlo
      irscope show model.hlo -o model.svg --color-by cost
      irscope show model.hlo -o model.html --lint
      irscope show model.hlo -o kernels.svg --policy xla-cpu
      irscope show model.hlo --around %fusion.3 --radius 1
      irscope show model.hlo --where 'op=dot and traffic>1MB'
    """
    from irscope.cli.showing import Request, show
    from irscope.query.choose import Wanted

    wanted = Wanted(around, radius, between or None, where, graph_, module_)
    return show(Request(once_stdin(files), format_ or _by_suffix(output), output, wanted, depth, by, color_by, dark, max_nodes, all_, width,
                        from_, shapes, dtypes, pass_, lint or color_by == "findings",
                        policy, device))


def _by_suffix(output: str) -> str:
    from pathlib import Path

    if output == "-":
        return "tree"
    suffix = Path(output).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        message = f"{output}: no format has the suffix {suffix or '(none)'}; known are {known}, or give --format"
        raise click.BadParameter(message, param_hint="-o")
    return SUFFIXES[suffix]
