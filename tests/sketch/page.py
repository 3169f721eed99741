# SPDX-License-Identifier: MIT
"""page.py PICTURE WORK [SHOTS]: what a reader of the HTML picture sees and does, in a real browser."""
import os
import subprocess
import sys
import time

from browser import Browser, find

picture, work, shots = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
SAMPLES = ["pbzip2", "one_failure", "lost_update", "with_loss", "five_threads", "huge_values", "hostile", "empty", "no_failure", "weak"]
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
    check(b.run("document.querySelectorAll('tr.unordered .step').length") == 2, "unordered steps stand in one row")
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


def fits_everywhere(b):
    b.size(400, 800)
    for sample in SAMPLES:
        b.open(url(sample))
        check(b.run("document.documentElement.scrollWidth <= innerWidth"), sample + " fits a narrow screen")
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
    for part in (loads_all, shows_the_cause, answers_the_mouse, answers_the_keyboard, fits_everywhere):
        part(the_browser)
finally:
    the_browser.close()
print(f"{checks} checks passed in the browser")
