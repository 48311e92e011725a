"""The HTML report in a real browser: opens on the answer, draws, zooms, answers keys and anchors.

Usage: html_report_test.py RENDER_TEXTPROTO. Skipped (77) without Chromium, chromedriver and
Selenium (Debian: chromium chromium-driver python3-selenium).
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's Selenium under another Python
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    print("skipped: Selenium is not installed")
    sys.exit(77)

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("skipped: no Chromium or no chromedriver")
    sys.exit(77)

MS = 1_000_000
STEP = 212 * MS


def bar(begin, end, label, leaf="", batch=-1, gap=-1, value=0):
    leaf = f"leaf: {leaf} " if leaf else ""
    return (f'bar {{ begin_ns: {int(begin)} end_ns: {int(end)} label: "{label}" {leaf}'
            f"batch: {batch} gap_index: {gap} value: {value} }}\n")


def lane(name, group, bars):
    return f'lane {{ name: "{name}" group: "{group}"\n{"".join(bars)} }}\n'


def timeline(which, begin, wait, first_gap, kernels):
    end = begin + wait + 131 * MS
    work = begin + wait + 4 * MS
    span = end - work
    lanes = [
        lane("GPU 0", "gpu", [bar(work + span * k // kernels, work + span * k // kernels + span * 9 // (10 * kernels),
                                  f"kernel_{k % 7}") for k in range(kernels)]),
        lane("copies", "copy", [bar(begin + wait, work, "H2D pinned"), bar(work + span // 3, work + span // 2, "H2D pinned")]),
        lane("waits for", "cause", [bar(begin, begin + wait, "decode", "DATA_CPU", 37, first_gap),
                                    bar(begin + wait, work, "copy", "BUSY_COPY_EXPOSED", -1, first_gap + 1)]),
        lane("main thread", "host", [bar(begin, begin + wait, "next()", "", 37), bar(work, end, "backward <b>&</b>")]),
        lane("worker 1", "worker", [bar(begin, begin + wait - 3 * MS, "fetch", "", 37), bar(work, end, "fetch", "", 39)]),
        lane("batches ready", "queue", [bar(begin, work, "", value=0), bar(work, end, "", value=2)]),
    ]
    return f'timelines {{ which: "{which}" begin_ns: {begin} end_ns: {end}\n{"".join(lanes)} }}\n'


def gap(begin, length, leaf, step, text, batch=-1):
    return (f'gaps {{ begin_ns: {begin} end_ns: {begin + length} step: {step} top_leaf: {leaf} batch: {batch} worker: 1 '
            f'pieces {{ leaf: {leaf} total_ns: {length} grade_a_ns: {length} }} text {{ id: "x" text: "{text}" }} }}\n')


def report(base, kernels=300, steps=1755):
    parts = [base, timeline("typical", 0, 81 * MS, 0, kernels), timeline("worst", 40 * STEP, 143 * MS, 2, kernels),
             gap(0, 81 * MS, "DATA_CPU", 37, "GPU idle 81 ms", 37), gap(81 * MS, 4 * MS, "BUSY_COPY_EXPOSED", 37, "GPU idle 4 ms"),
             gap(40 * STEP, 143 * MS, "DATA_CPU", 112, "GPU idle 143 ms: batch 37 </script><b>bold</b>", 37),
             gap(40 * STEP + 143 * MS, 4 * MS, "BUSY_COPY_EXPOSED", 112, "GPU idle 4 ms, worst step")]
    for i in range(steps):
        length = STEP + (i * 7919 % 13) * MS + (700 * MS if i % 100 == 0 else 0)
        parts.append(f"step_points {{ begin_ns: {i * STEP} duration_ns: {length} window_id: {1 if i % 200 < 12 else 0} "
                     f'data_wait_ns: {80 * MS} mark: "{"checkpoint" if i % 100 == 0 else ""}" }}\n')
    for workers, step in ((0, 640), (2, 212), (4, 140), (8, 132)):
        parts.append(f"worker_curve {{ num_workers: {workers} step_ns: {step * MS} ci {{ low: {step * MS * 0.95} "
                     f"high: {step * MS * 1.05} level: 0.9 }} now: {'true' if workers == 2 else 'false'} }}\n")
    parts.append('loader { seen: true num_workers: 2 prefetch_factor: 2 cores: 16 fetch_mean_ns: 400000000 fetch_cpu_share: 0.8 }\n')
    for i in range(5):
        parts.append(f'kernels {{ name: "kernel_{i}<float>" count: {100 - i} total_ns: {(i * 37 % 50 + 1) * MS} fill: 0.5 kind: "compute" }}\n')
    return "".join(parts)


class Page:
    def __init__(self, path, width=1280, height=720):
        options = Options()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         f"--window-size={width},{height}", f"--user-data-dir={tempfile.mkdtemp(dir=os.path.dirname(path))}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        self.open(path)

    def open(self, path, anchor=""):
        begin = time.time()
        self.driver.get("about:blank")
        self.driver.get("file://" + path + anchor)
        deadline = time.time() + 30
        while not self.js("return document.documentElement.hasAttribute('data-ready')"):
            assert time.time() < deadline, "the page's script did not finish: " + str(self.errors())
            time.sleep(0.02)
        self.seconds = time.time() - begin

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def errors(self):
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def sentence(self):
        return self.find("#gap-sentence").text

    def width_of_first_kernel(self):
        return self.js("return document.querySelector('#timeline .c-compute rect.shape').getBoundingClientRect().width")


def check(condition, what):
    print(("ok    " if condition else "FAILED ") + what)
    if not condition:
        check.failed += 1


check.failed = 0


def test_desktop(path):
    page = Page(path)
    check(not page.errors(), "no console errors: " + str(page.errors()))
    check(page.js("return document.querySelector('#answer').getBoundingClientRect().top < 100"), "opens on the answer")
    box = page.js("const b = document.querySelector('.bar').getBoundingClientRect(); return [b.top, b.bottom, innerHeight]")
    check(0 < box[0] < box[1] < box[2], "the bar is on the first screen")
    check(page.js("return document.querySelectorAll('b.bold, #gap-sentence b').length") == 0 and "<b>bold</b>" in page.sentence(),
          "names are text")
    check(page.sentence().startswith("GPU idle 143 ms"), "the longest gap is selected: " + page.sentence())
    check(page.js("return document.querySelectorAll('#timeline .path').length") == 1, "a line from the worker to the GPU")
    # hover
    bar_element = page.find("#timeline .c-data rect.shape")
    page.js("arguments[0].scrollIntoView({block: 'center'})", bar_element)
    ActionChains(page.driver).move_to_element(bar_element).perform()
    check("decode" in page.find("#tip").text, "hover tells: " + page.find("#tip").text)
    # keyboard: next gap, wrap around, zoom, reset
    chart = page.find("#timeline svg")
    page.js("arguments[0].focus()", chart)
    seen = []
    for _ in range(4):
        chart.send_keys(Keys.ARROW_RIGHT)
        seen.append(page.sentence())
    check(len(set(seen)) == 4, "arrow keys visit every gap: " + str(len(set(seen))))
    check(page.js("return location.hash").startswith("#gap="), "the address follows")
    before = page.width_of_first_kernel()
    chart.send_keys("+")
    check(page.width_of_first_kernel() > 1.3 * before, "+ zooms in")
    chart.send_keys("0")
    check(abs(page.width_of_first_kernel() - before) < 0.1, "0 shows all")
    page.js("""const b = arguments[0].getBoundingClientRect();
        arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -400, clientX: b.left + 500, clientY: b.top + 60,
                                                            bubbles: true, cancelable: true}));""", chart)
    check(page.width_of_first_kernel() > 1.3 * before, "the wheel zooms a focused drawing")
    chart.send_keys("0")
    # the switch
    faded = "return document.querySelectorAll('#timeline .free').length"
    check(page.js(faded) > 0, "what costs nothing is faded")
    page.js("document.querySelector('#timeline input').click()")
    check(page.js(faded) == 0, "and can be shown")
    # sort and filter
    heads = page.driver.find_elements(By.CSS_SELECTOR, "#gpu table.sortable th button")
    heads[2].click()
    rows = page.js("return Array.from(document.querySelectorAll('#gpu table.sortable tbody tr td:nth-child(3)')).map(c => Number(c.dataset.v))")
    check(rows == sorted(rows, reverse=True), "a click sorts")
    page.find("#gpu input.filter").send_keys("kernel_3")
    check(page.js("return Array.from(document.querySelectorAll('#gpu table.sortable tbody tr')).filter(r => !r.hidden).length") == 1, "the filter filters")
    # the dots: keyboard tells about one step
    canvas = page.find("#dots canvas")
    page.js("arguments[0].focus()", canvas)
    canvas.send_keys(Keys.ARROW_RIGHT)
    check("step 0" in page.find("#tip").text, "a dot tells: " + page.find("#tip").text)
    painted = page.js("""const c = arguments[0], p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 3; i < p.length; i += 4) n += p[i] > 0; return n;""", canvas)
    check(painted > 3000, f"dots are painted ({painted} pixels)")
    check(page.js("return document.querySelectorAll('#curve path.curve').length") == 1, "the curve over workers is drawn")
    # anchors, both ways
    page.open(path, "#gap=1")
    check(page.sentence() == "GPU idle 4 ms", "an anchor opens its gap: " + page.sentence())
    page.js("location.hash = '#gap=0'")
    time.sleep(0.1)
    check(page.sentence() == "GPU idle 81 ms", "and follows later ones")
    page.js("document.querySelector('a.segment').click()")
    time.sleep(0.1)
    check(page.js("return location.hash").startswith("#gap="), "a click on the bar goes to its gap")
    check(not page.errors(), "no console errors in the end: " + str(page.errors()))
    requests = page.js("return performance.getEntriesByType('resource').length")
    check(requests == 0, "no requests")
    page.driver.quit()


def test_phone(path):
    page = Page(path, 390, 844)
    check(page.js("return document.documentElement.scrollWidth <= innerWidth"), "no sideways scrolling on a phone")
    check(page.js("return document.querySelector('.bar').getBoundingClientRect().bottom < innerHeight"), "the bar is on the phone's first screen")
    check(not page.errors(), "no console errors on a phone: " + str(page.errors()))
    page.driver.quit()


def test_without_script(path):
    text = open(path, encoding="utf-8").read()
    plain = path + ".plain.html"
    open(plain, "w", encoding="utf-8").write(text[:text.index("<footer>")])
    options = Options()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
        options.add_argument(argument)
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.get("file://" + plain)
    body = driver.find_element(By.TAG_NAME, "body").text
    for wanted in ("Your GPU waits for data.", "num_workers 2 -> 8", "GPU idle 143 ms", "kernel_3<float>", "84"):
        check(wanted in body, "without script: " + wanted)
    driver.quit()


HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "quote\" ' & <b>bold</b>",
           "\u202egpj.exe\u202c", "\u6838\u51fd\u6570 \U0001F600", "k" * 3000, "void a::b<c>(d)::{lambda()#1}", "]]>-->"]


def hostile(base):
    """Names that try to become markup, to turn the writing direction, or to burst the page."""
    def quoted(name):
        return name.replace("\\", "\\\\").replace('"', '\\"')
    parts = [base]
    for i, name in enumerate(HOSTILE):
        parts.append(f'kernels {{ name: "{quoted(name)}" count: 100 total_ns: {(9 - i) * MS} fill: 0.5 }}\n')
        parts.append(f'gaps {{ begin_ns: {i * MS} end_ns: {(i + 1) * MS} step: {i} top_leaf: HOST_PYTHON ended_by: "{quoted(name)}" '
                     f'text {{ id: "x" text: "GPU idle: {quoted(name)}" }} }}\n')
    lanes = [lane(quoted(name), "gpu", [bar(k * MS, (k + 1) * MS, quoted(HOSTILE[k])) for k in range(len(HOSTILE))])
             for name in HOSTILE]
    parts.append(f'timelines {{ which: "typical" begin_ns: 0 end_ns: {9 * MS}\n{"".join(lanes)} }}\n')
    return "".join(parts)


def test_hostile_names(path):
    for width in (1280, 390):
        page = Page(path, width, 800)
        check(not page.errors(), f"no console errors of hostile names at {width}: " + str(page.errors()))
        check(page.js("return document.querySelectorAll('img, b.bold').length") == 0 and page.js("return document.scripts.length") == 3,
              "hostile names make no elements")
        check(page.js("return document.documentElement.scrollWidth <= innerWidth"), f"nor sideways scrolling at {width}")
        seen = page.js("return Array.from(document.querySelectorAll('#gpu td.name')).map(c => c.textContent).join('|')")
        check(HOSTILE[0] in seen and HOSTILE[4] in seen, "they are shown as they are")
        check("\u202e" not in page.js("return document.body.textContent"), "what turns the writing direction is not")
        page.driver.quit()


def test_large(path):
    """The page of a large trace stays small. How long it takes to open is measured by hand on a
    quiet machine (docs/performance.md): a limit in seconds would fail with the load of this one."""
    page = Page(path)
    size = os.path.getsize(path)
    check(size < 2_000_000, f"a large trace makes {size} bytes (< 2 000 000)")
    elements = page.js("return document.getElementsByTagName('*').length")
    check(elements < 25_000, f"and {elements} elements (< 25 000)")
    print(f"      it opened in {page.seconds:.2f} s here")
    shown = "return Array.from(document.querySelectorAll('#gpu table.sortable tbody tr')).filter(r => r.offsetHeight > 0).length"
    check(page.js(shown) == 10, f"ten kernels are shown: {page.js(shown)}")
    page.js("document.querySelector('#gpu button.more').click()")
    check(page.js(shown) == 60, f"then all: {page.js(shown)}")
    page.js("document.querySelector('#gpu button.more').click()")
    page.find("#gpu input.filter").send_keys("many_59")
    check(page.js(shown) == 1, "the filter finds what is folded")
    check(not page.errors(), "no console errors: " + str(page.errors()))
    page.driver.quit()


def main(renderer, base_path):
    base = open(base_path, encoding="utf-8").read()
    with tempfile.TemporaryDirectory() as directory:
        def render(name, text):
            source = os.path.join(directory, name + ".textproto")
            open(source, "w", encoding="utf-8").write(text)
            target = os.path.join(directory, name + ".html")
            with open(target, "wb") as out:
                subprocess.run([renderer, "html", source], stdout=out, check=True)
            return target
        path = render("small", report(base))
        test_desktop(path)
        test_phone(path)
        test_without_script(path)
        test_hostile_names(render("hostile", hostile(base)))
        many = "".join(f'kernels {{ name: "many_{i}" count: 100 total_ns: {i + 1} fill: 0.5 }}\n' for i in range(60))
        test_large(render("large", report(base + many, kernels=20000, steps=100000)))
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
