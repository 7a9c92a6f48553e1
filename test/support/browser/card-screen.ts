import type { Page } from 'playwright-core';

/** Stands for the screen's lock, which a browser without a screen refuses: counts those that are held. */
export const FAKE_WAKE_LOCK = `window.locks = {
  heldCount: 0, count: 0, delayMs: 0, current: null,
  set(state) {
    Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
    Object.defineProperty(document, 'hidden', { value: state === 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  },
  hide() { if (this.current) this.current.release(); this.set('hidden'); },
  show() { this.set('visible'); },
};
Object.defineProperty(navigator, 'wakeLock', { value: { async request(type) {
  if (type !== 'screen') throw new Error(type);
  await new Promise((resolve) => setTimeout(resolve, window.locks.delayMs));
  const lock = { released: false, async release() {
    if (!this.released) window.locks.heldCount -= 1;
    this.released = true;
  } };
  window.locks.heldCount += 1;
  window.locks.count += 1;
  window.locks.current = lock;
  return lock;
} } });`;

/** Holds the responses to scripts of the page back until its release() is called. */
export const HELD_FETCH = `window.heldCount = 0;
const released = new Promise((resolve) => { window.release = resolve; });
const fetchNow = window.fetch;
window.fetch = async (...request) => {
  const response = await fetchNow(...request);
  window.heldCount += 1;
  await released;
  return response;
};`;

/** Measures how far an element is from the lower edge of the window. */
export const measureGap = (page: Page, selector: string) =>
  page.evaluate<number>(
    `Math.round(innerHeight - document.querySelector('${selector}').getBoundingClientRect().bottom)`,
  );

/** Lists the texts and pictures of the card that lie behind an element. */
export const listCovered = (page: Page, selector: string) =>
  page.evaluate<string[]>(`(() => {
    const note = document.querySelector('${selector}').getBoundingClientRect();
    return [...document.querySelectorAll('.card :is(h1, p, dt, dd, img, svg), .panel :is(h2, h3, li)')]
      .filter((element) => {
        const box = element.getBoundingClientRect();
        return box.height > 0 && box.top < note.bottom && box.bottom > note.top;
      })
      .map((element) => element.outerHTML);
  })()`);
