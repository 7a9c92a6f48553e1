/** How long an outcome fills the screen, and how long it can then be undone. */
const OUTCOME_MS = 2000;
const UNDO_MS = 10000;

/** Shows outcomes over the whole screen, and what waits or was refused. */
globalThis.CounterScreen = class {
  constructor({ texts, locale, session }, queue) {
    Object.assign(this, { texts, locale, queue });
    /** Who is signed in; on the page that was stored, whoever this browser knows of. */
    this.present = session;
    /** Confirms or discards what was scanned while nobody was signed in; set where somebody is. */
    this.onChoice = null;
    for (const id of ['result', 'waiting', 'unattended', 'refused']) {
      this[id] = document.getElementById(id);
    }
    /** Counts what was shown, so that the timers of a former outcome do nothing to the next one. */
    this.shown = 0;
    this.audio = null;
    // Browsers allow sound once somebody has touched the page.
    addEventListener('pointerdown', () => {
      if ('AudioContext' in window) this.audio ??= new AudioContext();
      if (this.audio) void this.audio.resume();
    });
  }

  async showWaiting(live) {
    const all = await this.queue.list('waiting');
    const format = new Intl.NumberFormat(this.locale);
    const userId = this.present?.user_id;
    const unattended = all.filter((entry) => entry.user_id === undefined);
    const own = all.filter(
      (entry) =>
        entry.user_id !== undefined && entry.user_id === userId && !live.has(entry.external_ref),
    );
    const others = all.filter((entry) => entry.user_id !== undefined && entry.user_id !== userId);
    this.waiting.textContent = [
      [own, this.texts.waiting],
      [others, this.texts.others],
      [unattended, this.texts.unattendedCount],
    ]
      .filter(([entries]) => entries.length > 0)
      .map(([entries, text]) => text.replace('{n}', format.format(entries.length)))
      .join(', ');
    this.waiting.hidden = this.waiting.textContent === '';
    this.showUnattended(unattended);
  }

  /** Asks whoever is signed in which of what was scanned while nobody was signed in is theirs. */
  showUnattended(entries) {
    const { unattended, texts, onChoice } = this;
    const key = entries.map(({ external_ref }) => external_ref).join();
    unattended.hidden = entries.length === 0 || onChoice === null;
    // What somebody has ticked stays while the rest of the page is refreshed.
    if (unattended.dataset.key === key) return;
    unattended.dataset.key = key;
    const time = new Intl.DateTimeFormat(this.locale, { dateStyle: 'short', timeStyle: 'short' });
    const lines = entries.map((entry) => {
      const label = createElement('label', '');
      const box = document.createElement('input');
      Object.assign(box, { type: 'checkbox', checked: true, value: entry.external_ref });
      const what = entry.code ?? `#${entry.customer_card_id}`;
      label.append(box, ` ${what}, ${time.format(new Date(entry.occurred_at))}`);
      return label;
    });
    const buttons = [
      [texts.confirm, true],
      [texts.discard, false],
    ].map(([text, isConfirmed]) => {
      const button = createButton(text, async () => {
        for (const button of unattended.querySelectorAll('button')) button.disabled = true;
        const boxes = [...unattended.querySelectorAll('input:checked')];
        const ticked = new Set(boxes.map(({ value }) => value));
        await onChoice(
          entries.filter(({ external_ref }) => ticked.has(external_ref)),
          isConfirmed,
        );
        for (const button of unattended.querySelectorAll('button')) button.disabled = false;
      });
      if (!isConfirmed) button.className = 'quiet';
      return button;
    });
    const title = createElement('p', texts.unattended);
    title.className = 'strong';
    unattended.replaceChildren(
      title,
      createElement('p', texts.unattendedWhy),
      ...lines,
      ...buttons,
    );
  }

  async showRefused() {
    const all = await this.queue.listRefused();
    const entries = all.filter(({ user_id }) => user_id === this.present?.user_id);
    this.refused.hidden = entries.length === 0;
    this.refused.replaceChildren();
    if (entries.length === 0) return;
    const title = createElement('p', this.texts.refused);
    title.className = 'strong';
    const list = document.createElement('ul');
    list.append(...entries.map(({ text }) => createElement('li', text)));
    const button = createButton(this.texts.dismiss, async () => {
      for (const { external_ref } of entries) await this.queue.dismiss(external_ref);
      await this.showRefused();
    });
    this.refused.append(title, list, button);
  }

  /** Shows an outcome of the service, which has rendered and escaped it. */
  showOutcome({ status, html, colors, event_id: eventId }) {
    const template = document.createElement('template');
    template.innerHTML = html;
    this.openResult([template.content], colors, status === 409);
    if (status === 200) {
      this.beep(880, 0.1);
      if (navigator.vibrate) navigator.vibrate(60);
      const hasQuestion = this.result.querySelector('.question') !== null;
      this.shrinkLater(hasQuestion ? UNDO_MS : OUTCOME_MS, eventId ? UNDO_MS : OUTCOME_MS);
    } else {
      this.beep(220, 0.3);
      if (navigator.vibrate) navigator.vibrate([120, 60, 120]);
      if (status !== 409) this.shrinkLater(UNDO_MS, UNDO_MS);
    }
  }

  showNotice(title, text, code) {
    const paragraph = createElement('p', [code, text].filter(Boolean).join('. '));
    this.openResult([createElement('h2', title), paragraph], null);
    this.shrinkLater(OUTCOME_MS, OUTCOME_MS);
  }

  ask(code, onYes) {
    const text = createElement('p', `${code}: ${this.texts.again}`);
    text.className = 'question';
    this.openResult([text, createButton(this.texts.addAnother, onYes, { once: true })], null, true);
  }

  /** @param isQuestion whether to close it is to say no */
  openResult(nodes, colors, isQuestion = false) {
    this.shown++;
    this.result.replaceChildren(...nodes);
    const close = createButton(isQuestion ? this.texts.no : this.texts.next, () => {
      this.closeResult();
    });
    close.className = 'next';
    (this.result.querySelector('.thumb') || this.result).append(close);
    this.result.className = 'result';
    for (const [name, key] of [
      ['--card', 'ground'],
      ['--on-card', 'text'],
    ]) {
      if (colors) this.result.style.setProperty(name, colors[key]);
      else this.result.style.removeProperty(name);
    }
    this.result.hidden = false;
  }

  /** Makes the outcome small, so that the camera is in view again, and takes it away later. */
  shrinkLater(afterMs, goneMs) {
    const at = this.shown;
    setTimeout(() => at === this.shown && this.result.classList.add('small'), afterMs);
    setTimeout(() => at === this.shown && this.closeResult(), Math.max(afterMs, goneMs));
  }

  closeResult() {
    this.shown++;
    this.result.hidden = true;
    this.result.replaceChildren();
  }

  /** Plays a short tone, which browsers allow once somebody has touched the page. */
  beep(frequency, seconds) {
    if (!this.audio || this.audio.state !== 'running') return;
    const [tone, volume] = [this.audio.createOscillator(), this.audio.createGain()];
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0.2, this.audio.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, this.audio.currentTime + seconds);
    tone.connect(volume).connect(this.audio.destination);
    tone.start();
    tone.stop(this.audio.currentTime + seconds);
  }
};

function createElement(name, text) {
  const created = document.createElement(name);
  created.textContent = text;
  return created;
}

/** @param options of its listener; `once`, so that a second tap does nothing */
function createButton(text, onClick, options) {
  const button = createElement('button', text);
  button.type = 'button';
  button.addEventListener('click', onClick, options);
  return button;
}
