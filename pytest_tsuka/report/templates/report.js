"use strict";
(() => {
  const items = [...document.querySelectorAll("details.item")];
  const controls = document.querySelector(".tools");
  if (!controls || !items.length) return;
  controls.hidden = false;
  const text = controls.querySelector("input");
  const choices = [...controls.querySelectorAll("select")];
  const count = controls.querySelector("output");
  const words = new Map();
  const wordsOf = (item) => {
    if (!words.has(item)) words.set(item, item.textContent.toLowerCase());
    return words.get(item);
  };
  const apply = () => {
    const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items) {
      const fits =
        choices.every((c) => !c.value || item.dataset[c.name] === c.value) &&
        (!wanted.length || wanted.every((w) => wordsOf(item).includes(w)));
      item.hidden = !fits;
      if (fits) shown += 1;
    }
    count.textContent = `${shown} of ${items.length}`;
  };
  let timer;
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(apply, 120);
  });
  for (const choice of choices) choice.addEventListener("change", apply);
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  addEventListener("beforeprint", () => {
    for (const item of items) if (!item.hidden && items.length <= 200) item.open = true;
  });
  apply();
  open();
})();
