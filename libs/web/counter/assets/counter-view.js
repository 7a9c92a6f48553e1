/** The texts for why there is no camera, by the name of the error. */
const CAMERA_ERRORS = {
  NotAllowedError: 'cameraDenied',
  SecurityError: 'cameraDenied',
  NotFoundError: 'noCamera',
  OverconstrainedError: 'noCamera',
  NotReadableError: 'cameraBusy',
  AbortError: 'cameraBusy',
};
const CAMERA_STATES = { on: '', lost: 'cameraLost', failed: 'cameraFailed' };

/** Shows what the camera sees, or says why it sees nothing and tries again. */
globalThis.CounterView = class {
  /** @param on `codes` and `decoder` as of CounterCamera */
  constructor({ texts, decoder }, on) {
    this.texts = texts;
    /** Why the camera is of no use: the name of a text, or nothing. */
    this.problem = '';
    for (const id of ['view', 'say', 'light', 'retry', 'typed', 'code']) {
      this[id] = document.getElementById(id);
    }
    this.camera = new CounterCamera(document.getElementById('camera'), decoder, {
      ...on,
      state: (state) => this.show(CAMERA_STATES[state]),
    });
    this.light.addEventListener('click', () => this.switchLight());
    this.retry.addEventListener('click', () => {
      this.say.textContent = this.texts.starting;
      this.retry.hidden = true;
      void this.start();
    });
    this.followDevices();
    void this.followPermission().catch((error) => console.debug(error));
  }

  get hasDecoder() {
    return this.camera.decoder !== undefined;
  }

  async start() {
    this.view.hidden = false;
    if (document.visibilityState !== 'visible') return;
    const { camera } = this;
    try {
      if (!(await camera.start())) return;
      if (!camera.track.muted) this.show('');
    } catch (error) {
      console.debug(error);
      camera.stop();
      this.show(CAMERA_ERRORS[error.name] ?? 'cameraFailed');
    }
    await keepAwake();
  }

  stop() {
    this.camera.stop();
  }

  show(problem) {
    const isOff = problem !== '';
    this.problem = problem;
    this.describe();
    this.view.classList.toggle('off', isOff);
    // Without a camera the field of the code comes first.
    if (isOff) this.typed.after(this.view);
    else document.querySelector('.counter-bar').after(this.view);
    if (isOff) focusField(this.code);
    this.retry.hidden = !isOff;
    this.light.hidden = isOff || !this.camera.hasLight;
    this.light.setAttribute('aria-pressed', 'false');
  }

  /** Says what the camera does, or why it does nothing. */
  describe() {
    const text = this.texts[this.problem || 'aim'];
    if (this.say.textContent !== text) this.say.textContent = text;
  }

  async switchLight() {
    const isOn = this.light.getAttribute('aria-pressed') !== 'true';
    try {
      await this.camera.setLight(isOn);
      this.light.setAttribute('aria-pressed', String(isOn));
    } catch (error) {
      console.debug(error);
      this.light.hidden = true;
    }
  }

  /** Starts when a camera was plugged in, or another app has given it back. */
  followDevices() {
    if (!navigator.mediaDevices) return;
    navigator.mediaDevices.addEventListener('devicechange', async () => {
      if (this.problem === '' || this.problem === 'cameraDenied') return;
      const devices = await navigator.mediaDevices.enumerateDevices();
      if (devices.some(({ kind }) => kind === 'videoinput')) await this.start();
    });
  }

  /** Starts when the camera is allowed in the settings of the browser. Not every browser knows this permission. */
  async followPermission() {
    const permission = await navigator.permissions.query({ name: 'camera' });
    permission.addEventListener('change', () => {
      if (permission.state === 'granted' && this.problem !== '') void this.start();
    });
  }
};

/** Keeps the screen on while the page is in view. */
async function keepAwake() {
  if (!navigator.wakeLock || document.visibilityState !== 'visible') return;
  try {
    await navigator.wakeLock.request('screen');
  } catch (error) {
    // The battery is low: the phone decides.
    console.debug(error);
  }
}
