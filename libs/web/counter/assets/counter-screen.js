/** How long an outcome fills the screen, and how long it can then be undone. */
const OUTCOME_MS = 2000;
const UNDO_MS = 10000;
const NOTE_MS = 4000;
/** Tones by what has happened, each with its frequency and seconds: nobody has to look. */
const TONES = {
  good: [[880, 0.1]],
  ready: [
    [880, 0.1],
    [1175, 0.2],
  ],
  redeemed: [
    [659, 0.1],
    [880, 0.1],
    [1319, 0.3],
  ],
  undone: [[660, 0.12]],
  saved: [[520, 0.12]],
  bad: [[220, 0.3]],
};

/** Shows outcomes over the whole screen, and what waits or was refused. */
globalThis.CounterScreen = class {
  constructor({ texts, locale, session }, queue) {
    Object.assign(this, { texts, locale, queue });
    this.plurals = new Intl.PluralRules(locale);
    this.numbers = new Intl.NumberFormat(locale);
    /** Why nothing could be sent the last time: the name of a text. Nobody has sent from the page that was stored. */
    this.link = session ? '' : 'unavailable';
    /** Who is signed in; on the page that was stored, whoever this browser knows of. */
    this.present = session;
    /** Confirms or discards what was scanned while nobody was signed in; set where somebody is. */
    this.onChoice = null;
    for (const id of ['result', 'waiting', 'note', 'unattended', 'refused', 'code']) {
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
    const { texts } = this;
    const userId = this.present?.user_id;
    const unattended = all.filter((entry) => entry.user_id === undefined);
    const own = all.filter(
      (entry) =>
        entry.user_id !== undefined && entry.user_id === userId && !live.has(entry.external_ref),
    );
    const others = all.filter((entry) => entry.user_id !== undefined && entry.user_id !== userId);
    const parts = [
      [own, texts.waiting],
      [others, texts.others],
      [unattended, texts.unattendedCount],
    ]
      .filter(([entries]) => entries.length > 0)
      .map(([entries, text]) => text.replace('{what}', this.count(entries)));
    const link = navigator.onLine ? this.link : 'offline';
    if (own.length > 0 && link) parts.unshift(texts[link]);
    else if (!navigator.onLine) parts.unshift(parts.length > 0 ? texts.offline : texts.offlineWhy);
    this.waiting.textContent = parts.join(' · ');
    this.waiting.hidden = parts.length === 0;
    this.showUnattended(unattended);
  }

  /** Counts stamps and rewards, such as "2 stamps, 1 reward". */
  count(entries) {
    const rewardCount = entries.filter(({ operation }) => operation === 'redeem').length;
    return [
      [entries.length - rewardCount, this.texts.stamps],
      [rewardCount, this.texts.rewards],
    ]
      .filter(([count]) => count > 0)
      .map(([count, forms]) => {
        const form = forms[this.plurals.select(count)] ?? forms.other;
        return form.replace('{n}', this.numbers.format(count));
      })
      .join(', ');
  }

  /** Says that entries were sent which had to wait. */
  showSent(entries) {
    this.showNote(this.texts.sent.replace('{what}', this.count(entries)), true);
  }

  showNote(text, isGood = false) {
    this.note.textContent = text;
    this.note.classList.toggle('good', isGood);
    this.note.hidden = false;
    clearTimeout(this.noteTimer);
    this.noteTimer = setTimeout(() => (this.note.hidden = true), isGood ? NOTE_MS : UNDO_MS);
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
    const title = createElement('p', texts.unattended, 'strong');
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
    const title = createElement('p', this.texts.refused, 'strong');
    const list = document.createElement('ul');
    list.append(...entries.map(({ text }) => createElement('li', text)));
    const button = createButton(this.texts.dismiss, async () => {
      for (const { external_ref } of entries) await this.queue.dismiss(external_ref);
      await this.showRefused();
    });
    this.refused.append(title, list, button);
  }

  /** Shows an outcome of the service, which has rendered and escaped it. */
  showOutcome({ status, html, colors, event_id: eventId }, tone = 'good') {
    const template = document.createElement('template');
    template.innerHTML = html;
    const kind = status !== 200 && !colors ? 'bad' : '';
    this.openResult([template.content], { colors, kind, isQuestion: status === 409 });
    const hasQuestion = this.result.querySelector('.question') !== null;
    // A question and a reward that is ready stay in view until the next scan.
    const stays = hasQuestion || this.result.querySelector('.redeem') !== null;
    if (status === 200) {
      const isReady = tone === 'good' && this.result.querySelector('.ready') !== null;
      this.play(isReady ? 'ready' : tone);
      if (navigator.vibrate) navigator.vibrate(60);
      const goneMs = eventId ? UNDO_MS : OUTCOME_MS;
      this.shrinkLater(hasQuestion ? UNDO_MS : OUTCOME_MS, stays ? null : goneMs);
    } else {
      this.play('bad');
      if (navigator.vibrate) navigator.vibrate([120, 60, 120]);
      if (status !== 409) this.shrinkLater(UNDO_MS, stays ? null : UNDO_MS);
    }
  }

  /** Says below the camera that an operation is under way: whoever sees nothing happen does it again. */
  showProgress(text) {
    this.shown++;
    this.paint('small', null);
    this.result.replaceChildren(createElement('p', text, 'progress'));
    this.result.hidden = false;
    this.cover(false);
  }

  /** Says in the outcome that one of its buttons is at work. They can be pressed again once it has failed. */
  holdButtons() {
    for (const button of this.result.querySelectorAll('button')) button.disabled = true;
    this.result.prepend(createElement('p', this.texts.moment, 'progress'));
  }

  /** Says what the page itself knows. @param kind `warn`, `bad` */
  showNotice(title, text, kind) {
    this.openResult(createOutcome(title, text), { kind });
    this.play(kind === 'bad' ? 'bad' : 'saved');
    const ms = kind === 'bad' ? UNDO_MS : OUTCOME_MS;
    this.shrinkLater(ms, ms);
  }

  /** Says in the outcome that one of its buttons has done nothing, so that it can be pressed again. */
  showProblem(text) {
    this.shown++;
    const outcome = this.result.querySelector('.outcome');
    const problem = outcome.querySelector('.problem') ?? createElement('p', '', 'problem');
    problem.textContent = text;
    outcome.prepend(problem);
    for (const button of this.result.querySelectorAll('button')) button.disabled = false;
    this.result.querySelector('.progress')?.remove();
    this.result.classList.remove('small');
    this.cover(true);
    this.play('bad');
  }

  /** Asks before a second stamp of a card whose first one waits here. */
  ask(code, { occurred_at: at }, onYes) {
    const seconds = Math.max(1, Math.round((Date.now() - Date.parse(at)) / 1000));
    const format = new Intl.RelativeTimeFormat(this.locale);
    const ago =
      seconds < 60
        ? format.format(-seconds, 'second')
        : format.format(-Math.round(seconds / 60), 'minute');
    const button = createButton(this.texts.addAnother, onYes, { once: true });
    button.className = 'add';
    const nodes = createOutcome(code, this.texts.again.replace('{ago}', ago), [button]);
    nodes[0].lastChild.className = 'question';
    this.openResult(nodes, { kind: 'warn', isQuestion: true });
  }

  /** @param isQuestion whether to close it is to say no */
  openResult(nodes, { colors = null, kind = '', isQuestion = false }) {
    this.shown++;
    this.result.replaceChildren(...nodes);
    const close = createButton(isQuestion ? this.texts.no : this.texts.next, () => this.decline());
    close.className = 'next';
    this.result.querySelector('.thumb').append(close);
    this.paint(kind, colors);
    this.result.hidden = false;
    this.cover(true);
  }

  paint(kind, colors) {
    this.result.className = `result ${kind}`;
    for (const [name, key] of [
      ['--card', 'ground'],
      ['--on-card', 'text'],
    ]) {
      if (colors) this.result.style.setProperty(name, colors[key]);
      else this.result.style.removeProperty(name);
    }
  }

  /** Keeps the keyboard out of what an outcome covers; afterwards the next code can be typed at once. */
  cover(isCovered) {
    for (const other of this.result.parentElement.children) {
      other.inert = isCovered && other !== this.result;
    }
    if (!isCovered) focusField(this.code);
  }

  /** Closes the outcome. After a no to its question, the card stays in view with the rewards that are ready. */
  decline() {
    const has = (selector) => this.result.querySelector(selector) !== null;
    if (!has('.question') || !has('.redeem')) return this.closeResult();
    this.shown++;
    for (const part of this.result.querySelectorAll('.question, form[data-kind=add]'))
      part.remove();
    this.result.querySelector('.next').textContent = this.texts.next;
    this.shrinkLater(OUTCOME_MS, null);
  }

  /** Makes the outcome small, so that the camera is in view again, and takes it away later. @param goneMs null: with the next */
  shrinkLater(afterMs, goneMs) {
    const at = this.shown;
    setTimeout(() => {
      if (at !== this.shown) return;
      this.result.classList.add('small');
      this.cover(false);
    }, afterMs);
    if (goneMs === null) return;
    setTimeout(() => at === this.shown && this.closeResult(), Math.max(afterMs, goneMs));
  }

  closeResult() {
    this.shown++;
    this.result.hidden = true;
    this.result.replaceChildren();
    this.cover(false);
  }

  /** Plays tones one after the other, which browsers allow once somebody has touched the page. */
  play(name) {
    if (!this.audio || this.audio.state !== 'running') return;
    let at = this.audio.currentTime;
    for (const [frequency, seconds] of TONES[name]) {
      const [tone, volume] = [this.audio.createOscillator(), this.audio.createGain()];
      tone.frequency.value = frequency;
      volume.gain.setValueAtTime(0.2, at);
      volume.gain.exponentialRampToValueAtTime(0.001, at + seconds);
      tone.connect(volume).connect(this.audio.destination);
      tone.start(at);
      at += seconds;
      tone.stop(at);
    }
  }
};

/** Focuses a field where there is a keyboard, unless somebody is elsewhere: on a phone its keyboard would cover the page. */
function focusField(field) {
  if (document.activeElement !== document.body || !matchMedia('(pointer: fine)').matches) return;
  field.focus({ preventScroll: true });
}

function createElement(name, text, className = '') {
  const created = document.createElement(name);
  Object.assign(created, { textContent: text, className });
  return created;
}

/** Creates what the service renders for the outcome of a scan, without a card. */
function createOutcome(title, text, buttons = []) {
  const [outcome, thumb] = ['outcome', 'thumb'].map((name) => createElement('div', '', name));
  outcome.append(createElement('h2', title, 'who'), createElement('p', text));
  thumb.append(...buttons);
  return [outcome, thumb];
}

/** @param options of its listener; `once`, so that a second tap does nothing */
function createButton(text, onClick, options) {
  const button = createElement('button', text);
  button.type = 'button';
  button.addEventListener('click', onClick, options);
  return button;
}
