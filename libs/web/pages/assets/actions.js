// Buttons that need a script, which are hidden without one, and forms that a browser shows again.
const DONE_MS = 3000;

if (navigator.clipboard) {
  for (const button of document.querySelectorAll('[data-copy]')) {
    const label = button.textContent;
    let timer = 0;
    button.hidden = false;
    button.setAttribute('aria-live', 'polite');
    button.addEventListener('click', async () => {
      const { copy: id, text = document.getElementById(id).textContent.trim() } = button.dataset;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // The browser does not allow it: the text can be selected instead.
        button.hidden = true;
        return;
      }
      button.textContent = button.dataset.done;
      clearTimeout(timer);
      timer = setTimeout(() => {
        button.textContent = label;
      }, DONE_MS);
    });
  }
}

if (navigator.share) {
  for (const button of document.querySelectorAll('[data-share]')) {
    button.hidden = false;
    button.addEventListener('click', () => {
      const { share: url, title } = button.dataset;
      // Rejected when the person closes the menu.
      navigator.share({ url, title }).catch(() => undefined);
    });
  }
}

for (const button of document.querySelectorAll('[data-reveal]')) {
  button.hidden = false;
  button.addEventListener('click', () => {
    const input = document.getElementById(button.dataset.reveal);
    input.type = input.type === 'password' ? 'text' : 'password';
    // The first is seen, the second read out.
    const [text, label] = button.children;
    [text.textContent, button.dataset.other] = [button.dataset.other, text.textContent];
    [label.textContent, button.dataset.otherLabel] = [button.dataset.otherLabel, label.textContent];
  });
}

// The bar stays in view from the first change on.
for (const bar of document.querySelectorAll('.save-bar')) {
  const show = () => bar.classList.add('unsaved');
  const form = bar.closest('form');
  form.addEventListener('input', show);
  form.addEventListener('change', show);
}

// The button that saves a correction says what it leads to.
for (const button of document.querySelectorAll('[data-change]')) {
  const { form, dataset, textContent: label } = button;
  const show = () => {
    const { direction, stamps } = form.elements;
    const change = direction.value === 'remove' ? -stamps.valueAsNumber : stamps.valueAsNumber;
    const to = Number(dataset.from) + change;
    button.textContent = to >= 0 ? dataset.change.replace('%', to) : label;
  };
  form.addEventListener('input', show);
  show();
}

// Where a password renews the session, a second click would arrive with the cookie that the first one has replaced.
const forms = [...document.querySelectorAll('form')].filter((form) =>
  form.querySelector('input[type=password]'),
);
for (const form of forms) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = 'yes';
    // The page stays when its user stops the request: without this its form would be dead.
    setTimeout(() => delete form.dataset.sent, 5000);
  });
}
// Also when the browser goes back to the page.
addEventListener('pageshow', ({ persisted }) => {
  for (const form of forms) delete form.dataset.sent;
  if (!persisted) return;
  // Sent from a page that the browser has kept, a form is another request than the one before.
  for (const input of document.querySelectorAll('input[name=form_key]')) {
    input.value += '.';
  }
});
