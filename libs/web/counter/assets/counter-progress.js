/**
 * Says at once that what was pressed is under way: an installed counter shows nothing of the browser that would, and whoever
 * sees nothing happen presses again.
 */
const progress = document.getElementById('progress');
const showProgress = (event) => (progress.hidden = event.defaultPrevented);
addEventListener('submit', showProgress);
addEventListener('click', (event) => {
  const link = event.target.closest('a[href]');
  const isElsewhere = event.ctrlKey || event.metaKey || event.shiftKey;
  if (link && !isElsewhere && !link.hash) showProgress(event);
});
// Also when the browser goes back to the page.
addEventListener('pageshow', () => (progress.hidden = true));
