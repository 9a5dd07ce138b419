r"""Texts that try to run in a browser: as script, as an attribute of htmx, as a way out of where they were put.

Each that became markup would leave an element with `data-canary`, set `window.canary`, open a dialog, or ask the site
for an address with `canary` in it. The number in front says which one it was. None begins or ends with white space
or holds a NUL, which forms and rows refuse.
"""

RUNS = (  # elements that run by themselves, or fetch
    "<script data-canary>window.canary=1</script>",
    "</script><script data-canary>window.canary=1</script>",
    "<img data-canary src=/canary.png onerror=window.canary=1>",
    "<img/data-canary/src=/canary.png/onerror=window.canary=1//",
    "<ImG dAtA-cAnArY sRc=/canary.png OnErRoR=window.canary=1>",
    "<iframe data-canary srcdoc='<script>parent.canary=1</script>'></iframe>",
    "<object data-canary data=/canary.html></object><embed data-canary src=/canary.html>",
    "<video data-canary poster=/canary.png><source src=/canary.mp4 onerror=window.canary=1></video>",
    "<audio data-canary src=/canary.mp3 onerror=window.canary=1 autoplay>",
    "<details data-canary open ontoggle=window.canary=1>",
    "<marquee data-canary onstart=window.canary=1>canary</marquee>",
    "<input data-canary autofocus onfocus=window.canary=1>",
    "<body data-canary onload=window.canary=1 onpageshow=window.canary=1>",
    "<template data-canary shadowrootmode=open><img src=/canary.png onerror=window.canary=1></template>",
    "<script data-canary type=module>import '/canary.js'</script>",
    '<script data-canary type=importmap>{"imports": {"/static/site.js": "/canary.js"}}</script>',
    '<noscript><p title="</noscript><img data-canary src=/canary.png onerror=window.canary=1>">',
)
PAGE = (  # elements that change the page or where it leads
    "<form data-canary action=/canary method=post><button>canary</button></form>",
    "<button data-canary form=move formaction=/canary>canary</button>",
    "<style data-canary>@import '/canary.css';</style>",
    "<link data-canary rel=stylesheet href=/canary.css><link rel=prefetch href=/canary.js>",
    "<meta data-canary http-equiv=refresh content='0;url=/canary'>",
    "<meta data-canary http-equiv=Content-Security-Policy content=\"script-src 'none'\">",
    "<base data-canary href=/canary/>",
    "<div data-canary id=table class=banner role=alert style=position:fixed;inset:0;background:url(/canary.png)>",
    "<a data-canary id=htmx name=htmx><a data-canary id=htmx name=config href=/canary>canary</a></a>",
)
HTMX = (  # attributes and elements that htmx would act on
    "<div data-canary hx-get=/canary hx-trigger=load></div>",
    "<div data-canary data-hx-post=/canary data-hx-trigger=load></div>",
    '<div data-canary hx-on::load="window.canary=1" hx-on:click="window.canary=1"></div>',
    "<div data-canary hx-ext=ws ws-connect=/canary></div>",
    '<div data-canary id=part-brief hx-swap-oob="true">canary</div>',
    '<li data-canary hx-swap-oob="beforeend:#log">canary</li>',
    '<input data-canary type=hidden id=last value=999 hx-swap-oob="true">',
    "<div data-canary hx-boost=true hx-vals='js:{canary: window.canary=1}' hx-get=/canary hx-trigger=revealed></div>",
)
BREAKOUTS = (  # ways out of an attribute, an element of text, a comment, a script, a piece of JSON
    '" autofocus onfocus=window.canary=1 data-canary x="',
    "' onmouseover=window.canary=1 data-canary x='",
    "` onmouseover=window.canary=1 data-canary x=`",
    "</textarea></title></option><b data-canary>canary</b>",
    "--></style></xmp></noscript><b data-canary>canary</b><!--",
    "]]></script><b data-canary>canary</b><![CDATA[",
    "\\';window.canary=1;//\\\";window.canary=1;//",
    '"}],"canary":[{"x":"</script><b data-canary>',
    "\\u003cscript data-canary\\u003ewindow.canary=1\\u003c/script\\u003e",
    "<!--<script data-canary>window.canary=1",
    "<propose><img data-canary src=/canary.png></propose>",
)
FOREIGN = (  # SVG and MathML, and what parsers make of them
    "<svg data-canary onload=window.canary=1>",
    "<svg><animate data-canary onbegin=window.canary=1 attributeName=x dur=1s></svg>",
    "<svg><use data-canary href='/canary.svg#x'></use><image href=/canary.png></svg>",
    "<svg><foreignObject><iframe data-canary src=/canary></iframe></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><img data-canary src=/canary.png>",
    "<math><maction data-canary actiontype=statusline xlink:href=javascript:window.canary=1>canary</maction></math>",
)
ADDRESSES = (  # in links, with the markup languages that make them
    "<a data-canary href=javascript:window.canary=1>canary</a>",
    "<a data-canary href='java&#9;script:window.canary=1'>canary</a>",
    "javascript:window.canary=1//https://example.org/",
    "data:text/html,<script>parent.canary=1</script><b data-canary>",
    '//canary.invalid/%2e%2e/canary?<b data-canary>#"><b data-canary>',
    "![canary](/canary.png) [canary](javascript:window.canary=1) <javascript:window.canary=1>",
    "[canary]: /canary 'x' onclick=window.canary=1\n\n```html\n<b data-canary>\n```",
)
ENCODED = (  # what a second decoding would turn into markup, and what templates would evaluate
    "&lt;img data-canary src=/canary onerror=window.canary=1&gt;",
    "&amp;lt;b data-canary&amp;gt; &#60;b data-canary&#62; &#x3c;b data-canary&#x3e;",
    "%3Cscript data-canary%3Ewindow.canary=1%3C/script%3E",
    "+ADw-script data-canary+AD4-window.canary=1+ADw-/script+AD4-",
    "\uff1cscript data-canary\uff1ewindow.canary=1\uff1c/script\uff1e",
    "{{ request.user }}{% now 'Y' %}${7*7}<b data-canary/>",
    "{% endblock %}{% include '/canary' %}{# #}{{ settings.SECRET_KEY }}<b data-canary>",
    "#{7*7} <%= 7*7 %> {{7*7}} {{constructor.constructor('window.canary=1')()}} <b data-canary v-on:x=canary>",
)
CHARACTERS = (  # what characters do to a page, a log or a terminal
    "\u202e<b data-canary>yranac</b>\u202c\u2066\u2067canary\u2069",
    "<\u200bb data-canary><b\u200b data-canary>\ufeff<b data-canary>\u00ad",
    "<b\x0cdata-canary\x0b><\x01b data-canary>\x08\x7f\x85",
    "<b\u2028data-canary\u2029><b\u00a0data-canary>",
    "\x1b[31m\x1b]0;canary\x07\x1b]8;;http://canary.invalid/\x1b\\<b data-canary>\x1b[2J",
    "x\r\nSet-Cookie: canary=1\r\nContent-Type: text/html\r\n\r\n<b data-canary>",
    "Z\u0351\u0344\u0357" * 40 + "<b data-canary>",
    "canary" * 400 + "<b data-canary>",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467\u0e49\u0e49 \ufdfd <b data-canary>",
)
_BODIES = RUNS + PAGE + HTMX + BREAKOUTS + FOREIGN + ADDRESSES + ENCODED + CHARACTERS
PAYLOADS = tuple(f"p{number:02d} {body}" for number, body in enumerate(_BODIES))
