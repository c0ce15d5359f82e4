// What is wider than its place scrolls with the keys of arrows too, once it can be reached with the key Tab. Its first column
// then stays where it is (site.css).
"use strict";
function reachable() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .formula, .cell-output")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", "wider than the page: it scrolls");
    } else {
      box.removeAttribute("tabindex");
    }
  }
}
addEventListener("load", () => requestAnimationFrame(reachable));
addEventListener("resize", reachable);
