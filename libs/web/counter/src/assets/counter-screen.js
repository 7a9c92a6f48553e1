/** How long an outcome fills the screen, and how long it can then be undone. */
const OUTCOME_MS = 2000;
const UNDO_MS = 10000;

/** Shows outcomes over the whole screen, and what waits or was refused. */
globalThis.CounterScreen = class {
  constructor({ texts, locale, userId }, queue) {
    Object.assign(this, { texts, locale, userId, queue });
    for (const id of ['result', 'waiting', 'refused']) this[id] = document.getElementById(id);
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
    const own = all.filter(
      (entry) => entry.user_id === this.userId && !live.has(entry.external_ref),
    );
    const others = all.filter((entry) => entry.user_id !== this.userId);
    this.waiting.textContent = [
      own.length > 0 && this.texts.waiting.replace('{n}', format.format(own.length)),
      others.length > 0 && this.texts.others.replace('{n}', format.format(others.length)),
    ]
      .filter(Boolean)
      .join(', ');
    this.waiting.hidden = this.waiting.textContent === '';
  }

  async showRefused() {
    const entries = await this.queue.listRefused();
    this.refused.hidden = entries.length === 0;
    this.refused.replaceChildren();
    if (entries.length === 0) return;
    const title = document.createElement('p');
    title.className = 'strong';
    title.textContent = this.texts.refused;
    const list = document.createElement('ul');
    for (const { text } of entries) {
      const line = document.createElement('li');
      line.textContent = text;
      list.append(line);
    }
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = this.texts.dismiss;
    button.addEventListener('click', async () => {
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
    const [strong, paragraph] = [document.createElement('h2'), document.createElement('p')];
    strong.textContent = title;
    paragraph.textContent = [code, text].filter(Boolean).join('. ');
    this.openResult([strong, paragraph], null);
    this.shrinkLater(OUTCOME_MS, OUTCOME_MS);
  }

  ask(code, onYes) {
    const text = document.createElement('p');
    text.className = 'question';
    text.textContent = `${code}: ${this.texts.again}`;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = this.texts.addAnother;
    // A second tap is not a second stamp.
    button.addEventListener('click', onYes, { once: true });
    this.openResult([text, button], null, true);
  }

  /** @param isQuestion whether to close it is to say no */
  openResult(nodes, colors, isQuestion = false) {
    this.shown++;
    this.result.replaceChildren(...nodes);
    const close = document.createElement('button');
    close.type = 'button';
    close.className = 'next';
    close.textContent = isQuestion ? this.texts.no : this.texts.next;
    close.addEventListener('click', () => this.closeResult());
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
