// Shows the value of a bar that is touched, or reached with the arrow keys. Without a script its title is a tooltip.
for (const svg of document.querySelectorAll('.chart svg')) {
  const bars = [...svg.querySelectorAll(':scope > :is(g, path)')];
  const peak = svg.parentElement.querySelector('.peak');
  const most = peak.textContent;
  let shown = -1;
  const show = (index) => {
    bars[shown]?.classList.remove('on');
    shown = index;
    bars[shown]?.classList.add('on');
    const text = bars[shown]?.querySelector('title').textContent;
    peak.textContent = text ?? most;
    peak.classList.toggle('strong', text !== undefined);
    svg.setAttribute('aria-valuenow', Math.max(0, shown));
    svg.setAttribute('aria-valuetext', text ?? most);
  };
  const follow = ({ clientX }) => {
    const { left, width } = svg.getBoundingClientRect();
    const index = Math.floor(((clientX - left) / width) * bars.length);
    show(Math.min(bars.length - 1, Math.max(0, index)));
  };
  svg.tabIndex = 0;
  svg.setAttribute('role', 'slider');
  svg.setAttribute('aria-valuemin', 0);
  svg.setAttribute('aria-valuemax', bars.length - 1);
  show(-1);
  svg.addEventListener('pointerdown', follow);
  svg.addEventListener('pointermove', follow);
  svg.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse' && document.activeElement !== svg) show(-1);
  });
  svg.addEventListener('focus', () => show(shown < 0 ? bars.length - 1 : shown));
  svg.addEventListener('blur', () => show(-1));
  svg.addEventListener('keydown', (event) => {
    const last = bars.length - 1;
    const next = {
      ArrowLeft: shown - 1,
      ArrowDown: shown - 1,
      ArrowRight: shown + 1,
      ArrowUp: shown + 1,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, next)));
  });
}
