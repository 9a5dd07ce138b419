"""Texts that try to run in a browser: as script, as an attribute of htmx, as a way out of where they were put.

Each that became markup would leave an element with `data-canary`, set `window.canary`, open a dialog, or ask the site
for an address with `canary` in it. The number in front says which one it was.
"""

_BODIES = (
    "<script data-canary>window.canary=1</script>",
    "</script><script data-canary>window.canary=1</script>",
    "<img data-canary src=/canary.png onerror=window.canary=1>",
    "<svg data-canary onload=window.canary=1>",
    "<div data-canary hx-get=/canary hx-trigger=load></div>",
    "<div data-canary data-hx-post=/canary data-hx-trigger=load></div>",
    '<div data-canary hx-on::load="window.canary=1" hx-on:click="window.canary=1"></div>',
    "<div data-canary hx-ext=ws ws-connect=/canary></div>",
    '<div data-canary id=part-card hx-swap-oob="true">canary</div>',
    '<li data-canary hx-swap-oob="beforeend:#log">canary</li>',
    '" autofocus onfocus=window.canary=1 data-canary x="',
    "' onmouseover=window.canary=1 data-canary x='",
    "</textarea></title></option><b data-canary>canary</b>",
    "<iframe data-canary srcdoc='<script>parent.canary=1</script>'></iframe>",
    "<a data-canary href=javascript:window.canary=1>canary</a>",
    "<form data-canary action=/canary method=post><button>canary</button></form>",
    "<style data-canary>@import '/canary.css';</style>",
    "<meta data-canary http-equiv=refresh content='0;url=/canary'>",
    "<base data-canary href=/canary/>",
    "<details data-canary open ontoggle=window.canary=1>",
    "&lt;img data-canary src=/canary onerror=window.canary=1&gt;",
    "{{ request.user }}{% now 'Y' %}${7*7}<b data-canary/>",
    "<propose><img data-canary src=/canary.png></propose>",
    "<math><mtext><table><mglyph><style><img data-canary src=/canary.png>",
)
PAYLOADS = tuple(f"p{number:02d} {body}" for number, body in enumerate(_BODIES))
