// Keeps the previews of the designer up to date, adds rows of rewards, and cuts an uploaded picture to the strip's shape.
const form = document.getElementById('design');
const fronts = document.getElementById('fronts');
const failed = document.getElementById('preview-failed');
const rows = document.getElementById('reward-rows');
const addReward = document.getElementById('add-reward');
const WAIT_MS = 250;
const DEADLINE_MS = 15000;

document.getElementById('show-preview').hidden = true;
addReward.hidden = false;
document.getElementById('errors')?.focus();

let timer;
let running;
/** The address of the part of a chosen picture, which is uploaded with the form. */
let pictureUrl;

async function update() {
  running?.abort();
  const request = new AbortController();
  running = request;
  const timeout = setTimeout(() => request.abort(), DEADLINE_MS);
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (typeof value === 'string') fields.append(name, value);
  }
  if (pictureUrl) fields.append('picture_chosen', 'yes');
  try {
    const response = await fetch(form.dataset.preview, {
      method: 'POST',
      body: fields,
      // To the page for signing in, once the session has ended.
      redirect: 'error',
      signal: request.signal,
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const html = await response.text();
    // The list starts anew, and shall show the device that was swiped to.
    const left = fronts.querySelector('.fronts').scrollLeft;
    fronts.innerHTML = html;
    fronts.querySelector('.fronts').scrollLeft = left;
    showPicture();
    for (const note of document.querySelectorAll('[id^=warning-]')) {
      const warning = findWarning(note.id.slice('warning-'.length));
      note.hidden = !warning;
      note.firstElementChild.textContent = warning?.textContent ?? '';
    }
    failed.hidden = true;
  } catch {
    // A newer request has replaced this one, or it failed.
    if (running === request) failed.hidden = false;
  } finally {
    clearTimeout(timeout);
  }
}

let isChanged = false;
let isSending = false;

function updateSoon() {
  isChanged = true;
  askBeyond();
  clearTimeout(timer);
  timer = setTimeout(update, WAIT_MS);
}

const findWarning = (name) => fronts.querySelector(`[data-warning="${name}"]`);

for (const button of form.querySelectorAll('[id^=warning-] button')) {
  button.addEventListener('click', (event) => {
    event.preventDefault();
    const fix = JSON.parse(findWarning(button.value)?.dataset.fix ?? '{}');
    for (const [name, value] of Object.entries(fix)) form.elements[name].value = value;
    form.elements.card_color.focus();
    form.dispatchEvent(new Event('input'));
  });
}

form.addEventListener('input', updateSoon);
form.addEventListener('change', updateSoon);

/** Adds an empty row, or finds the one that is there. */
function getEmptyRow() {
  const last = rows.lastElementChild;
  const inputs = [...last.querySelectorAll('input:not([type=checkbox]), textarea')];
  if (inputs.every(({ value }) => value === '')) {
    last.classList.remove('spare');
    return last;
  }
  const index = rows.children.length;
  const row = last.cloneNode(true);
  row.id = 'reward-new';
  if (last.id === 'reward-new') last.id = `reward-${index - 1}`;
  row.querySelector('legend').textContent = last
    .querySelector('legend')
    .textContent.replace(/\d+/, index + 1);
  row.querySelectorAll('fieldset > .check, .error').forEach((element) => element.remove());
  row.querySelectorAll('.wrong').forEach((element) => element.classList.remove('wrong'));
  row.querySelectorAll('details').forEach((element) => element.removeAttribute('open'));
  row.querySelectorAll('input, textarea, label').forEach((element) => {
    for (const name of ['name', 'id', 'for']) {
      const value = element.getAttribute(name);
      if (value) element.setAttribute(name, value.replace(/reward_\d+_/, `reward_${index}_`));
    }
    element.removeAttribute('aria-invalid');
    element.removeAttribute('aria-describedby');
    if (element.type === 'checkbox') element.checked = false;
    else if ('value' in element && element.tagName !== 'LABEL') element.value = '';
  });
  rows.append(row);
  return row;
}

const getInput = (row, part) => row.querySelector(`[name$="_${part}"]`);

addReward.addEventListener('click', () => getInput(getEmptyRow(), 'name').focus());

fronts.addEventListener('click', (event) => {
  const point = event.target.closest('.points a');
  if (!point) return;
  event.preventDefault();
  const stamp = point.textContent;
  const existing = [...rows.children].find((row) => getInput(row, 'stamps').value === stamp);
  const row = existing ?? getEmptyRow();
  if (!existing) {
    getInput(row, 'stamps').value = stamp;
    form.dispatchEvent(new Event('input'));
  }
  getInput(row, 'name').focus();
});

/** Asks about rewards for which one card is not enough, as the server does. */
function askBeyond() {
  const full = Number(form.elements.stamps_required.value);
  for (const row of rows.children) {
    const isRemoved = getInput(row, 'removed')?.checked;
    const isBeyond = !isRemoved && full > 0 && Number(getInput(row, 'stamps').value) > full;
    row.querySelector('.beyond').hidden = !isBeyond;
    getInput(row, 'beyond').required = isBeyond;
  }
}
askBeyond();

// Work is lost neither by leaving, nor shown to many without a question.
const sure = document.getElementById('sure');
let isSure = false;
form.addEventListener('submit', (event) => {
  if (preparation) {
    event.preventDefault();
    const submit = () => form.requestSubmit(event.submitter);
    preparation.then(submit, submit);
    return;
  }
  if (sure && !isSure) {
    event.preventDefault();
    sure.returnValue = '';
    const warnings = [...document.querySelectorAll('[id^=warning-]:not([hidden]) p')];
    const text = document.getElementById('sure-warnings');
    text.textContent = warnings.map(({ textContent }) => textContent).join(' ');
    text.hidden = warnings.length === 0;
    sure.showModal();
    return;
  }
  isSending = true;
});
sure?.addEventListener('close', () => {
  if (sure.returnValue !== 'save') return;
  isSure = true;
  form.requestSubmit();
});
addEventListener('beforeunload', (event) => {
  if (isChanged && !isSending) event.preventDefault();
});
addEventListener('pageshow', () => {
  isSending = false;
  isSure = false;
});

// The picture
const file = document.getElementById('field-picture');
const crop = document.getElementById('crop');
const canvas = document.getElementById('crop-canvas');
const [zoom, across, down] = ['zoom', 'across', 'down'].map((part) =>
  document.getElementById(`crop-${part}`),
);
const QUALITY = 0.9;
let picture;
/** The work on a picture that is not done yet: a photo as it was chosen may be too large to be sent. */
let preparation;

/** Finds the part of the picture that is shown. */
function getPart() {
  const shape = canvas.width / canvas.height;
  const scale = Number(zoom.value) / 100;
  const width = Math.min(picture.width, picture.height * shape) / scale;
  const height = width / shape;
  return {
    x: (picture.width - width) * (Number(across.value) / 100),
    y: (picture.height - height) * (Number(down.value) / 100),
    width,
    height,
  };
}

function draw() {
  if (!picture) return;
  const { x, y, width, height } = getPart();
  const context = canvas.getContext('2d');
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, x, y, width, height, 0, 0, canvas.width, canvas.height);
}

/** Draws the part of the chosen picture below the stamps of the previews. */
function showPicture() {
  if (pictureUrl) fronts.querySelector('#chosen image')?.setAttribute('href', pictureUrl);
  warnOfPicture();
}

/** Computes the relative luminance of a colour (WCAG 2.2). */
function computeLuminance(channels) {
  const [red, green, blue] = channels.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const readColor = (name) =>
  [1, 3, 5].map((at) => parseInt(form.elements[name].value.slice(at, at + 2), 16));

/** Warns of stamps that are about as light as most of the picture behind them. */
function warnOfPicture() {
  const isShown = form.elements.strip_type.value === 'image' && picture;
  let isHard = false;
  if (isShown) {
    const small = new OffscreenCanvas(25, 10).getContext('2d');
    small.drawImage(canvas, 0, 0, 25, 10);
    const { data } = small.getImageData(0, 0, 25, 10);
    const strength = Number(form.elements.strip_opacity.value) / 100;
    const card = readColor('card_color');
    const stamp = computeLuminance(readColor('stamp_background_color'));
    let hardCount = 0;
    for (let at = 0; at < data.length; at += 4) {
      const mixed = card.map((channel, i) => channel + (data[at + i] - channel) * strength);
      const ground = computeLuminance(mixed);
      const contrast = (Math.max(stamp, ground) + 0.05) / (Math.min(stamp, ground) + 0.05);
      if (contrast < 1.6) hardCount += 1;
    }
    isHard = hardCount > 125;
  }
  document.getElementById('picture-warning').hidden = !isHard;
}

/** Puts the part that is shown in place of the chosen file; so photos of any size fit the limit. */
async function replaceFile() {
  if (!picture) return;
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/jpeg', QUALITY));
  if (!blob) return;
  URL.revokeObjectURL(pictureUrl);
  pictureUrl = URL.createObjectURL(blob);
  showPicture();
  updateSoon();
  const files = new DataTransfer();
  files.items.add(new File([blob], 'strip.jpg', { type: 'image/jpeg' }));
  file.files = files.files;
}

/** Runs work on the picture, for which saving waits. */
function prepare(work) {
  const current = work().finally(() => {
    if (preparation === current) preparation = undefined;
  });
  preparation = current;
}

async function readFile() {
  const [chosen] = file.files;
  picture = undefined;
  URL.revokeObjectURL(pictureUrl);
  pictureUrl = undefined;
  crop.hidden = true;
  warnOfPicture();
  if (!chosen) return;
  try {
    picture = await createImageBitmap(chosen, { imageOrientation: 'from-image' });
  } catch {
    // The server says what is wrong with it.
    return;
  }
  zoom.value = 100;
  across.value = 50;
  down.value = 50;
  crop.hidden = false;
  draw();
  await replaceFile();
}
file.addEventListener('change', () => prepare(readFile));

for (const slider of [zoom, across, down]) {
  slider.addEventListener('input', draw);
  slider.addEventListener('change', () => prepare(replaceFile));
}

// The picture can be dragged as well.
let dragged;
canvas.addEventListener('pointerdown', (event) => {
  if (!picture) return;
  dragged = { x: event.clientX, y: event.clientY };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', (event) => {
  if (!dragged || !picture) return;
  const part = getPart();
  const scale = part.width / canvas.clientWidth;
  const move = (slider, by, room) => {
    if (room > 0) slider.value = Number(slider.value) - (100 * by * scale) / room;
  };
  move(across, event.clientX - dragged.x, picture.width - part.width);
  move(down, event.clientY - dragged.y, picture.height - part.height);
  dragged = { x: event.clientX, y: event.clientY };
  draw();
});
canvas.addEventListener('pointerup', () => {
  dragged = undefined;
  prepare(replaceFile);
});
