// Copies and shares the links of posters.
for (const button of document.querySelectorAll('[data-copy]')) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = button.dataset.done;
    } catch {
      button.textContent = button.dataset.failed;
    }
    setTimeout(() => {
      button.textContent = label;
    }, 2500);
  });
}
for (const button of document.querySelectorAll('[data-share]')) {
  if (!navigator.share) continue;
  button.hidden = false;
  button.addEventListener('click', async () => {
    try {
      await navigator.share({ title: button.dataset.title, url: button.dataset.share });
    } catch (error) {
      // Whoever closes the sheet again has not failed.
      if (error.name !== 'AbortError') throw error;
    }
  });
}
