"""A Sphinx extension: formulas as MathML, which browsers show without a script."""

from docutils import nodes
from docutils.utils.math import latex2mathml


def visit_inline(self, node):
    """Write a formula within a line."""
    self.body.append(str(latex2mathml.tex2mathml(node.astext())))
    raise nodes.SkipNode  # the text of the formula is written already


def visit_block(self, node):
    """Write a formula of its own."""
    formula = str(latex2mathml.tex2mathml(node.astext(), as_block=True))
    self.body.append(f"<div class='math'>{formula}</div>\n")
    raise nodes.SkipNode  # the text of the formula is written already


def setup(app):
    """Make it the way in which HTML pages show formulas."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
