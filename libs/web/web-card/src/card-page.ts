import { createHash } from 'node:crypto';
import { isExpired } from '#cards/card.js';
import type { PassContent, PassReward } from '#passes/pass-content.js';
import { renderCardStyle, getPlainStyle } from './card-style.js';
import type { Device } from './device.js';
import { html, verbatim, type Html } from './html.js';
import { renderQrCode } from './qr-code.js';
import { findCardTranslations, type CardLocalization } from './translations.js';

/** Links the card's strip image in three resolutions. */
export type StripLinks = { '1x': string; '2x': string; '3x': string };

export type CardView = {
  content: PassContent;
  /** The pass's tag, which rises with every visible change. */
  tag: number;
  /**
   * Set right after signing up, because the customer may have had a card before (ADR-0051).
   * @property isLinkSent whether a message with its link is sent
   */
  joined: { isLinkSent: boolean } | null;
  now: Date;
  device: Device;
  /** The wallets that are configured. */
  wallets: { apple: boolean; google: boolean };
  strip: StripLinks;
  /** A square PNG with the card's icon. */
  logo: string;
  /** The key for subscribing to notifications; null without them. */
  pushKey: string | null;
  /** The prefix of every path. */
  root: string;
  /** The path of the script that keeps the page up to date. */
  scriptPath: string;
};

export type Page = { body: string; policy: string };

/** Renders the page of a customer card. It is complete without its script, which only keeps it up to date. */
export function renderCardPage(view: CardView): Page {
  const { content, root, scriptPath, logo } = view;
  const localization = findCardTranslations(content.locale);
  const cardPath = `${root}/passes/${content.uuid}`;
  const head = html`<meta name="theme-color" content="${content.card.cardColor}" />
    <link rel="manifest" href="${cardPath}/manifest.webmanifest" />
    <link rel="icon" type="image/svg+xml" href="${cardPath}/icon.svg" />
    <link rel="apple-touch-icon" href="${logo}" />
    <script src="${scriptPath}" defer></script>`;
  return renderDocument({
    lang: localization.locale,
    title: `${content.card.name} · ${content.storeName}`,
    style: renderCardStyle(content.card),
    head,
    body: html`${renderMain(view, localization, cardPath)}
      <p class="announcement" role="status" id="announcement"></p>`,
  });
}

/** Renders a page that says why there is no card. */
export function renderMessagePage(locale: string, title: string, text: string): Page {
  return renderDocument({
    lang: locale,
    title,
    style: getPlainStyle(),
    head: html`<link rel="icon" href="data:," />`,
    body: html`<main class="plain">
      <h1>${title}</h1>
      <p>${text}</p>
    </main>`,
  });
}

function renderMain(view: CardView, localization: CardLocalization, cardPath: string): Html {
  const { content, tag, joined, pushKey, now } = view;
  const { t, locale } = localization;
  const { timeZone } = content;
  const asOf = new Intl.DateTimeFormat(locale, {
    timeZone,
    dateStyle: 'medium',
    timeStyle: 'short',
  }).format(now);
  return html`<main
    id="card"
    class="page ${hasEnded(content, now) && 'ended'}"
    data-at="${cardPath}"
    data-tag="${tag}"
    data-summary="${summarize(content, localization)}"
    data-push-key="${pushKey ?? ''}"
  >
    <p class="panel notice offline wide" id="offline" hidden>${t.offline(asOf)}</p>
    ${
      joined &&
      html`<p class="panel wide" id="joined">
        <strong>${t.joined}</strong>
        ${joined.isLinkSent ? t.joinedWhy : t.joinedWithoutLink}
      </p>`
    }
    ${renderExpiryNotice(content, localization, now)} ${renderCard(view, localization)}
    <div class="details">
      ${renderRewards(view, localization)} ${renderButtons(view, localization, cardPath)}
    </div>
  </main>`;
}

function renderCard({ content, strip, now }: CardView, localization: CardLocalization): Html {
  const { t, locale } = localization;
  const { card: appearance, storeName, stampsCount } = content;
  const isEnded = hasEnded(content, now);
  const numbers = new Intl.NumberFormat(locale);
  const balance = `${numbers.format(stampsCount)} / ${numbers.format(appearance.stampsRequired)}`;
  return html`<article class="card" aria-label="${appearance.name}">
    <div class="top">
      <div>
        <p>${appearance.headerText ?? storeName}</p>
        <h1>${appearance.name}</h1>
      </div>
      <p class="count"><span class="label">${t.stamps}</span> <strong>${balance}</strong></p>
    </div>
    ${renderStrip(strip, summarize(content, localization))}
    ${renderFields(content, isEnded, localization)}
    <figure>
      ${renderQrCode(content.code, t.qrCode(content.code))}
      <figcaption><span class="code">${content.code}</span>${!isEnded && t.showCode}</figcaption>
    </figure>
  </article>`;
}

function renderStrip(strip: StripLinks, alt: string): Html {
  const set = `${strip['1x']} 1x, ${strip['2x']} 2x, ${strip['3x']} 3x`;
  return html`<img
    class="strip"
    src="${strip['2x']}"
    srcset="${set}"
    width="375"
    height="144"
    alt="${alt}"
  />`;
}

function renderFields(
  { memberName, stampsToReward, card: appearance }: PassContent,
  isEnded: boolean,
  localization: CardLocalization,
): Html | null {
  const { t } = localization;
  const rows: [string, string][] = [];
  if (memberName !== null) rows.push([t.member, memberName]);
  if (!isEnded && stampsToReward !== null && stampsToReward > 0) {
    rows.push([t.toReward, formatCount(t.stampCount, stampsToReward, localization)]);
  }
  for (const { label, value } of appearance.auxiliaryFields) rows.push([label ?? '', value]);
  if (rows.length === 0) return null;
  return html`<dl class="fields">
    ${rows.map(
      ([label, value]) =>
        html`<div>
          <dt class="label">${label}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

function renderRewards({ content, now }: CardView, localization: CardLocalization): Html | null {
  const { rewards: all } = content;
  if (all.length === 0) return null;
  const isEnded = hasEnded(content, now);
  return html`<section class="panel" aria-labelledby="rewards">
    <h2 id="rewards">${localization.t.rewards}</h2>
    <ul>
      ${all.map((reward) => renderReward(reward, content.stampsCount, isEnded, localization))}
    </ul>
  </section>`;
}

function renderReward(
  reward: PassReward,
  stampsCount: number,
  isEnded: boolean,
  localization: CardLocalization,
): Html {
  const { t } = localization;
  const { name, description, stampsRequired, available } = reward;
  const missing = stampsRequired - stampsCount;
  const state = available
    ? html`<span class="state ready">${t.ready}</span>`
    : html`<span class="state">${formatCount(t.toGo, missing, localization)}</span>`;
  const progress = html`<progress
    max="${stampsRequired}"
    value="${stampsCount}"
    aria-label="${name}"
  ></progress>`;
  return html`<li>
    <div class="reward">
      <h3>${name}</h3>
      ${!isEnded && state}
    </div>
    ${description !== null && html`<p class="about">${description}</p>`}
    ${!isEnded && !available && progress}
  </li>`;
}

/** Renders the buttons for wallets, installation and notifications. */
function renderButtons(
  view: CardView,
  localization: CardLocalization,
  cardPath: string,
): Html | null {
  const { content, device, wallets, pushKey, now } = view;
  if (hasEnded(content, now)) return null;
  const { t } = localization;
  const apple = wallets.apple && device !== 'android';
  const google = wallets.google && device !== 'apple';
  return html`<section class="buttons" aria-label="${t.onYourPhone}">
    ${apple && html`<a class="button" href="${cardPath}/apple">${t.addToApple}</a>`}
    ${google && html`<a class="button" href="${cardPath}/google">${t.addToGoogle}</a>`}
    <button class="button quiet" type="button" id="install" hidden>${t.install}</button>
    ${
      pushKey !== null &&
      html`<button
          class="button quiet"
          type="button"
          id="notify"
          data-on="${t.notifyMe}"
          data-off="${t.stopNotifying}"
          hidden
        >
          ${t.notifyMe}
        </button>
        <p class="hint" id="blocked" role="alert" hidden>${t.notificationsBlocked}</p>
        <p class="hint" id="failed" role="alert" hidden>${t.notificationsFailed}</p>`
    }
    <p class="hint" id="by-hand" hidden>${t.installByHand}</p>
    ${renderValidity(content, localization)}
  </section>`;
}

function renderValidity(content: PassContent, localization: CardLocalization): Html | null {
  if (content.expiresAt === null) return null;
  return html`<p class="hint">
    ${localization.t.validUntil(formatDay(content.expiresAt, content, localization))}
  </p>`;
}

function renderExpiryNotice(
  content: PassContent,
  localization: CardLocalization,
  now: Date,
): Html | null {
  if (content.expiresAt === null || !isExpired(content, now)) return null;
  const text = localization.t.expired(formatDay(content.expiresAt, content, localization));
  return html`<p class="panel notice wide">${text}</p>`;
}

function hasEnded(content: PassContent, now: Date): boolean {
  return content.state === 'void' || isExpired(content, now);
}

/** Describes the balance in one sentence. */
export function summarize(
  { stampsCount, card: { stampsRequired } }: PassContent,
  localization: CardLocalization,
): string {
  const { t, locale } = localization;
  if (stampsCount > stampsRequired) return formatCount(t.stampsBeyond, stampsCount, localization);
  const numbers = new Intl.NumberFormat(locale);
  return t.stampsOf(numbers.format(stampsCount), numbers.format(stampsRequired));
}

export function formatCount(
  say: (text: string, count: number) => string,
  count: number,
  { locale }: CardLocalization,
): string {
  return say(new Intl.NumberFormat(locale).format(count), count);
}

function formatDay(at: string, { timeZone }: PassContent, { locale }: CardLocalization): string {
  return new Intl.DateTimeFormat(locale, { timeZone, dateStyle: 'long' }).format(new Date(at));
}

type Parts = { lang: string; title: string; style: string; head: Html; body: Html };

function renderDocument({ lang, title, style, head, body }: Parts): Page {
  const text = html`<!doctype html>
    <html lang="${lang}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
        <meta name="robots" content="noindex, nofollow" />
        <title>${title}</title>
        ${head} ${verbatim(`<style>${style}</style>`)}
      </head>
      <body>
        ${body}
      </body>
    </html> `.text;
  // Removes the indentation of this file.
  return { body: text.replace(/\n +/g, '\n'), policy: buildContentSecurityPolicy(style) };
}

/** Allows the inline style by its hash: thus a cached page is complete without another request. */
function buildContentSecurityPolicy(style: string): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "script-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
