// Keeps the picture of a poster up to date with its form.
const form = document.getElementById('poster-form');
const picture = document.getElementById('poster-picture');
const WAIT_MS = 350;
let timer;

function update() {
  const fields = new FormData(form);
  const query = new URLSearchParams();
  for (const name of form.dataset.shown.split(' ')) {
    if (fields.has(name)) query.set(name, fields.get(name));
  }
  picture.src = `${form.dataset.preview}?${query}`;
}

form.addEventListener('input', ({ target }) => {
  if (!form.dataset.shown.split(' ').includes(target.name)) return;
  clearTimeout(timer);
  timer = setTimeout(update, WAIT_MS);
});
