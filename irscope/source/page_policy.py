"""The content security policy of the pages that irscope writes: allows only the script and the style of the page itself."""
from __future__ import annotations

import hashlib
from base64 import b64encode


def policy_of(script: str, style: str) -> str:
    """The ``<meta>`` that allows one inline script and one inline style, by their hashes, and nothing from elsewhere.

    A script that a dump could have put into the page has another hash, and does not run. Script blocks with another ``type`` are data.
    """
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _hash(text: str) -> str:
    """The CSP source of the text between the tags."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
