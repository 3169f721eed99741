# SPDX-License-Identifier: MIT
"""page.py PICTURE WORK [SHOTS]: what a reader of the HTML picture sees and does, in a real browser."""
import os
import subprocess
import sys
import time

from browser import Browser, find

picture, work, shots = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
SAMPLES = ["pbzip2", "one_failure", "lost_update", "with_loss", "five_threads", "huge_values", "hostile", "empty", "no_failure", "weak", "session_cache", "threads_2",
           "threads_8", "threads_32", "threads_64"]
checks = 0


def check(condition, what):
    global checks
    if not condition:
        raise SystemExit("FAIL: " + what)
    checks += 1


def url(sample):
    return "file://" + os.path.join(work, sample + ".html")


def shoot(b, name):
    if shots:
        os.makedirs(shots, exist_ok=True)
        b.screenshot(os.path.join(shots, name + ".png"))


def eventually(b, expression, what):
    for _ in range(60):
        if b.run(expression):
            return check(True, what)
        time.sleep(0.05)
    check(False, what)


def loads_all(b):
    """Every sample, alone: no error, no other load, and nothing of the sketch's text became markup."""
    for sample in SAMPLES:
        with open(os.path.join(work, sample + ".html"), "wb") as out:
            out.write(subprocess.run([picture, sample, "html"], check=True, stdout=subprocess.PIPE).stdout)
        b.messages.clear()
        b.requests.clear()
        b.open(url(sample))
        check(b.messages == [], f"{sample}: the console says {b.messages}")
        check({r for r in b.requests if r != "about:blank"} == {url(sample)}, f"{sample}: loads {b.requests}")
        check(b.run("document.images.length + document.scripts.length") == 1, f"{sample}: markup from text")
        check(b.run("document.querySelectorAll('h1').length") == 1, f"{sample}: one headline")
    b.open(url("hostile"))
    check("</script><img src=x onerror=alert(1)>" in b.run("document.querySelector('.step code').textContent"), "text is shown as it is")
    blocked = b.run("(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s); return window.ran })()")
    check(blocked is None, "the policy lets no other script run")


def shows_the_cause(b):
    b.open(url("pbzip2"))
    check("SIGSEGV in consumer()" in b.run("document.querySelector('h1').innerText"), "headline")
    check("5 failing, 43 passing" in b.run("document.querySelector('.facts').innerText"), "counts of runs")
    check(b.run("document.querySelectorAll('.causes > ol > li').length") == 2, "one cause a kind")
    check("in 5/5 failing, 0/43 passing" in b.run("document.querySelector('.cause').innerText"), "counts first")
    check(b.run("document.querySelector('.cause').getBoundingClientRect().bottom < innerHeight / 2"), "the cause is in the first half of the screen")
    check(b.run("document.querySelectorAll('.wires path.because').length") == 1, "the cause's arrow is drawn")
    arrow = b.run("(() => { const p = document.querySelector('.wires path.because'), e = p.getPointAtLength(p.getTotalLength()),"
                  " o = document.querySelector('.picture').getBoundingClientRect(), t = document.querySelector('#at-6').getBoundingClientRect();"
                  " return [e.x + o.left - t.left, e.y + o.top - t.top] })()")
    check(0 <= arrow[0] <= 60 and -12 <= arrow[1] <= 4, f"the arrow ends at its step, not at {arrow}")
    letters = b.run("[...document.querySelectorAll('#at-6 .letter')].map(e => e.textContent).join('')")
    check(letters == "AB", f"a step has the letters of its causes in the picture, not {letters}")
    check(b.run("document.querySelector('#at-2').classList.contains('marked')") is False, "what is behind the fold marks no step")
    shoot(b, "light")
    b.open(url("one_failure"))
    check("one failure, no comparison yet" in b.run("document.body.innerText"), "says that nothing was compared")
    check(b.run("document.querySelector('.cause, .letter, .marked, .because, .deciding')") is None, "no cause without comparison")
    b.open(url("with_loss"))
    text = b.run("document.body.innerText")
    for words in ("steps may be missing here", "Lost: AUX truncated, 4096 bytes", "pbzip.c has changed", "read ?"):
        check(words in text, words + " is visible")
    shoot(b, "loss")
    b.open(url("lost_update"))
    check(b.run("document.querySelectorAll('.row.unordered .step').length") == 2, "unordered steps stand in one row")
    check("Nothing proves which came first" in b.run("document.body.innerText"), "and the page says so")
    shoot(b, "unordered")


def answers_the_mouse(b):
    b.open(url("pbzip2"))
    for selector, evidence in ((".value.deciding", "watchpoint, stamped 21,400"), (".chip.because", "clocks: 412 cycles apart")):
        hidden = f"getComputedStyle(document.querySelector('{selector} .tip')).display"
        check(b.run(hidden) == "none", "no evidence before it is asked for")
        b.hover(selector)
        eventually(b, hidden + " === 'block'", "evidence on hover")
        check(evidence in b.run(f"document.querySelector('{selector} .tip').innerText"), "the evidence itself")
        shoot(b, "hover")
    b.click("#at-6")
    eventually(b, "getComputedStyle(document.querySelector('#step-6')).display === 'block'", "a click opens the step")
    panel = b.run("document.querySelector('#step-6').innerText")
    for words in ("/src/pbzip/pbzip.c:141", "line 139 of </src/pbzip/pbzip.c>", "line 141 of", "registers at the failure", "proven after", "brought in"):
        check(words in panel, words + " is in the panel")
    check(b.run("getComputedStyle(document.querySelector('#step-5')).display") == "none", "one panel at a time")
    shoot(b, "step")
    b.click("#step-6 .close")
    eventually(b, "getComputedStyle(document.querySelector('#step-6')).display === 'none'", "and its cross closes it")
    b.click("#cause-1")
    eventually(b, "document.querySelectorAll('.step.chosen').length === 1", "a cause shows its own steps only")
    check(b.run("document.querySelector('.step.chosen').id") == "at-6", "the right ones")
    b.click("a.all")
    eventually(b, "!document.body.classList.contains('filtered')", "all steps again")


def answers_the_keyboard(b):
    b.open(url("pbzip2"))
    b.run("document.querySelector('#at-1').focus()")
    b.key("ArrowDown", 40)
    check(b.run("document.activeElement.id") == "at-2", "down goes to the next step")
    b.key("Enter", 13)
    eventually(b, "document.activeElement.id === 'step-2'", "Enter opens it and moves there")
    b.key("Escape", 27)
    eventually(b, "document.activeElement.id === 'at-2'", "Escape closes it and comes back")
    for _ in range(60):
        b.key("Tab", 9)
        if b.run("document.activeElement.classList.contains('value')"):
            break
    check(b.run("getComputedStyle(document.activeElement.querySelector('.tip')).display") == "block", "evidence on focus")


def has_lanes(b):
    """The failing thread first, then the culprit; bystanders in a strip that opens, by mouse and by key."""
    heads = "[...document.querySelectorAll('.head .name')].map(e => e.textContent.slice(0, 2)).join()"
    b.open(url("threads_32"))
    check(b.run(heads) == "T2,T1", "the failing thread is first, and the culprit second")
    check(b.run("document.querySelector('.head .strip').innerText.includes('30 other threads')"), "bystanders are counted")
    visible = "[...document.querySelectorAll('.step')].filter(s => s.offsetParent).length"
    check(b.run(visible) == 3, "bystanders are folded")
    check("30 steps of other threads" in b.run("document.querySelector('.gap').innerText"), "what is folded is counted")
    wires = "document.querySelectorAll('.wires path.because').length"
    check(b.run(wires) == 1, "the arrow goes over the fold")
    b.click(".head .strip label")
    eventually(b, visible + " === 63", "a click opens the strip")
    b.key("o", 79)
    eventually(b, visible + " === 3", "a key closes it")
    b.open(url("threads_32") + "#step-20")
    eventually(b, "document.querySelector('#at-20').offsetParent !== null", "a link to a folded step opens the strip")
    b.open(url("threads_64"))
    b.run("scrollTo(0, 9999)")
    b.click(".head .strip label")
    b.run("scrollTo(0, 2000)")
    eventually(b, "Math.abs(document.querySelector('.head').getBoundingClientRect().top) < 2", "the head stays in sight")


def has_the_other_side(b):
    """What passing runs did, where a value came from, how the run was made."""
    b.open(url("session_cache"))
    text = b.run("document.querySelector('.picture').innerText")
    check("passing runs: never 0; 0x5581c0 to 0x5582f0" in text, "the deciding value has the passing runs' values beside it")
    check("./session_cache --sessions=8" in b.run("document.querySelector('header').innerText"), "the arguments of the run")
    check("cases/expired.txt" in b.run("document.querySelector('header').innerText"), "the input of the run")
    check("serve(id = 7)" in b.run("document.querySelector('.stacks').innerText"), "arguments in the stack")
    bars = "[...document.querySelectorAll('.margin rect')].map(r => r.getAttribute('width')).join()"
    check(b.run(bars) == "10,10,20,97,100", "the likelihood is a margin")
    check(b.run("document.querySelector('#at-5 i.s').textContent") == '"request"', "source has colours")
    b.click("#value-5-0")
    eventually(b, "!document.querySelector('#chain').hidden", "a click on a value opens its chain")
    steps = b.run("[...document.querySelectorAll('#chain li a')].map(a => a.hash).join()")
    check(steps == "#at-5,#at-4", f"the chain goes to the step that wrote the value, not {steps}")
    check(b.run("document.querySelectorAll('.wires path.from').length") == 1, "and an arrow shows it")
    check(b.run("location.hash") == "#value-5-0", "a chain has an address")
    b.key("Escape", 27)
    eventually(b, "document.querySelector('#chain').hidden", "Escape closes the chain")
    b.run("document.querySelector('#at-5').focus()")
    b.key("ArrowLeft", 37)
    check(b.run("document.activeElement.id") == "at-4", "left goes to the step that wrote the value")
    b.click("#at-5")
    panel = "getComputedStyle(document.querySelector('#step-5')).display === 'block'"
    eventually(b, panel, "the panel opens")
    aside = b.run("document.querySelector('#step-5 .aside').innerText")
    check("41 passing runs came here" in aside and "2 passing runs did not" in aside, "the passing side")
    check(b.run("document.querySelector('#step-5 .open a').href") == "vscode://file/src/cache/session_cache.cpp:45", "a link to the editor")


def opens_fast(b):
    """10,000 steps. Its times are printed, not judged: they depend on the machine's load."""
    with open(os.path.join(work, "long.html"), "wb") as out:
        out.write(subprocess.run([picture, "steps_10000", "html"], check=True, stdout=subprocess.PIPE).stdout)
    b.open(url("long"))
    took = b.run("performance.getEntriesByType('navigation')[0].duration")
    paint = b.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    print(f"10,000 steps: first seen after {paint or 0:.0f} ms, all loaded after {took:.0f} ms")
    check(b.run("document.querySelector('.sentence').getBoundingClientRect().bottom < innerHeight"), "the sentence is in sight at once")
    check(b.run("document.querySelectorAll('.step').length") == 10000, "every step is there")
    check(b.run("document.querySelectorAll('.panel[id^=step]').length") == 0, "panels wait until they are wanted")
    b.run("location.hash = '#step-5001'")
    eventually(b, "document.querySelector('#step-5001') && getComputedStyle(document.querySelector('#step-5001')).display === 'block'", "the panel of a step")
    eventually(b, "(() => { const r = document.querySelector('#at-5001').getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight })()", "a link leads to its row")
    check("table[i]" in b.run("document.querySelector('#at-5001').textContent"), "its text")
    check(b.run("document.querySelector('#step-5001 pre') !== null"), "and its source")


def fits_everywhere(b):
    for width in (390, 1400, 2560):
        b.size(width, 900)
        for sample in SAMPLES:
            b.open(url(sample))
            check(b.run("document.documentElement.scrollWidth <= innerWidth"), f"{sample} fits {width} pixels")
            cut = b.run("[...document.querySelectorAll('.step')].filter(s => s.offsetParent && s.scrollWidth > s.clientWidth + 1).length")
            check(cut == 0, f"{sample}: {cut} steps are cut at {width} pixels")
            if sample.startswith("threads_") or sample == "session_cache":
                shoot(b, f"{sample}-{width}")
    b.size(400, 800)
    b.open(url("pbzip2"))
    check(b.run("document.querySelector('#at-6').getBoundingClientRect().width > 300"), "steps take the narrow screen's width")
    shoot(b, "narrow")
    b.size(1280, 800)
    b.media(dark=True)
    b.open(url("pbzip2") + "#cause-0")
    check(b.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 28)", "dark where dark is wanted")
    check(b.run("document.querySelectorAll('.step.chosen').length") == 2, "a link to a cause shows it")
    shoot(b, "dark")
    b.media("print")
    b.open(url("pbzip2"))
    check(b.run("[...document.querySelectorAll('.panel')].every(p => getComputedStyle(p).display === 'block')"), "print has all evidence")
    check(b.run("getComputedStyle(document.querySelector('.panel')).position") == "static", "in the flow of the page")
    b.media()
    b.print(os.path.join(shots or work, "print.pdf"))


the_browser = Browser(find())
try:
    the_browser.size(1280, 800)
    the_browser.media()
    for part in (loads_all, shows_the_cause, answers_the_mouse, answers_the_keyboard, has_lanes, has_the_other_side, opens_fast, fits_everywhere):
        part(the_browser)
finally:
    the_browser.close()
print(f"{checks} checks passed in the browser")
