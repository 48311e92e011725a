// Conveniences of the static page: copy buttons, sorting, filtering, long tables, navigation.

// ---- copy buttons
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", () => {
    const text = button.getAttribute("data-copy");
    const done = () => {
      const before = button.textContent;
      button.textContent = words["copied-button"];
      setTimeout(() => { button.textContent = before; }, 1500);
    };
    // Files opened from disk have no clipboard interface in some browsers.
    const byHand = () => {
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      if (document.execCommand("copy")) done();
      area.remove();
      button.focus();
    };
    if (navigator.clipboard && isSecureContext) navigator.clipboard.writeText(text).then(done, byHand);
    else byHand();
  });
});

// ---- tables: sort and filter
document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const cell = row.cells[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
      };
      const rows = Array.from(body.rows).sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      body.append(...rows);
      table.dispatchEvent(new Event("sorted"));
    });
  });
});
document.querySelectorAll("input.filter").forEach((input) => {
  input.hidden = false;
  const table = input.parentElement.querySelector("table.sortable");
  const rows = Array.from(table.tBodies[0].rows);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    table.classList.toggle("filtered", wanted !== "");
    rows.forEach((row) => { row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted); });
  });
});

// ---- long tables: their first rows, and a button for the others
document.querySelectorAll("table[data-first]").forEach((table) => {
  const first = Number(table.dataset.first);
  if (!(first > 0)) return;
  const body = table.tBodies[0];
  const button = document.createElement("button");
  button.type = "button";
  button.className = "more";
  table.parentElement.after(button);
  let open = false;
  function update() {
    Array.from(body.rows).forEach((row, i) => row.classList.toggle("beyond", i >= first));
    table.classList.toggle("cut", !open);
    button.textContent = open ? words["show-fewer"] : fill(words["show-all"], { count: body.rows.length });
    button.setAttribute("aria-expanded", String(open));
  }
  button.addEventListener("click", () => { open = !open; update(); });
  table.addEventListener("sorted", update);
  update();
});
// ---- long names: one line until clicked
document.querySelectorAll("td .full").forEach((name) => {
  name.addEventListener("click", () => name.classList.toggle("open"));
});

// ---- navigation: the page one is on
const links = Array.from(document.querySelectorAll("nav a"));
const here = new IntersectionObserver((entries) => {
  entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    links.forEach((link) => link.classList.toggle("here", link.hash === "#" + entry.target.id));
  });
}, { rootMargin: "-20% 0px -70% 0px" });
document.querySelectorAll("main section").forEach((section) => here.observe(section));
