// Tables and code that scroll can be reached by the keyboard; the theme puts tables into boxes after the page has loaded.
const boxes = ".md-typeset__scrollwrap, .md-typeset pre, .md-typeset code, .shown";
const reach = () =>
  document.querySelectorAll(boxes).forEach((box) => {
    if (box.scrollWidth > box.clientWidth && box.tabIndex !== 0) box.tabIndex = 0;
  });
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
for (const event of ["load", "resize"]) window.addEventListener(event, reach);
reach();
