"""How long an HTML report takes to open in headless Chromium: every time, and the median.

Usage: page_timing.py REPORT.html [TIMES]     (9 without TIMES)

From the order to open the file until its script is done (every drawing made, every button
answers) and two frames have been shown since. A new browser each time; its own start does not
count. Needs chromium, chromium-driver and python3-selenium.
"""
import os
import shutil
import statistics
import sys
import tempfile
import time

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's Selenium under another Python
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

READY = """
const done = arguments[0];
(function look() {
  if (!document.documentElement.hasAttribute('data-ready')) { setTimeout(look, 5); return; }
  requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
})();
"""


def seconds_to_open(path):
    options = Options()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as profile:
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--window-size=1280,720", "--user-data-dir=" + profile):
            options.add_argument(argument)
        driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        try:
            driver.get("about:blank")
            begin = time.monotonic()
            driver.get("file://" + os.path.abspath(path))
            driver.execute_async_script(READY)
            return time.monotonic() - begin
        finally:
            driver.quit()


def main(path, times):
    seconds = [seconds_to_open(path) for _ in range(times)]
    print(f"{os.path.getsize(path)} bytes; opened in " + " ".join(f"{s:.2f}" for s in seconds))
    print(f"median {statistics.median(seconds):.2f} s of {times}, slowest {max(seconds):.2f} s")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9)
