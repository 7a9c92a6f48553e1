import { createHash } from 'node:crypto';
import { isExpired } from '#cards/card.js';
import type { PassContent, PassReward } from '#passes/pass-content.js';
import { cardStyle, plainStyle } from './card-style.js';
import type { Device } from './device.js';
import { html, verbatim, type Html } from './html.js';
import { qrCode } from './qr-code.js';
import { wordsOf, type Told } from './words.js';

/** The card's strip: one picture in three resolutions. */
export type StripLinks = { '1x': string; '2x': string; '3x': string };

export type CardView = {
  content: PassContent;
  /** Of the pass: rises when what it shows has changed. */
  tag: number;
  /**
   * Null unless somebody has just signed up for it, who may have had one before (ADR-0051).
   * @property isLinkSent whether a message with its link is sent
   */
  joined: { isLinkSent: boolean } | null;
  now: Date;
  device: Device;
  /** The wallets that a pass can be made for. */
  wallets: { apple: boolean; google: boolean };
  strip: StripLinks;
  /** A square PNG with the card's icon. */
  logo: string;
  /** With which the browser subscribes to notifications; null: there are none. */
  pushKey: string | null;
  /** In front of every path. */
  root: string;
  /** Of the script that keeps the page up to date. */
  scriptPath: string;
};

export type Page = { body: string; policy: string };

/** The page of one customer card. Everything in it is seen without its script, which only keeps it up to date. */
export function cardPage(view: CardView): Page {
  const { content, root, scriptPath, logo } = view;
  const told = wordsOf(content.locale);
  const at = `${root}/passes/${content.uuid}`;
  const head = html`<meta name="theme-color" content="${content.card.cardColor}" />
    <link rel="manifest" href="${at}/manifest.webmanifest" />
    <link rel="icon" type="image/svg+xml" href="${at}/icon.svg" />
    <link rel="apple-touch-icon" href="${logo}" />
    <script src="${scriptPath}" defer></script>`;
  return page({
    lang: told.locale,
    title: `${content.card.name} · ${content.storeName}`,
    style: cardStyle(content.card),
    head,
    body: html`${cardMain(view, told, at)}
      <p class="said" role="status" id="said"></p>`,
  });
}

/** A page that says in a few words why there is no card. */
export function plainPage(locale: string, title: string, text: string): Page {
  return page({
    lang: locale,
    title,
    style: plainStyle(),
    head: html`<link rel="icon" href="data:," />`,
    body: html`<main class="plain">
      <h1>${title}</h1>
      <p>${text}</p>
    </main>`,
  });
}

function cardMain(view: CardView, told: Told, at: string): Html {
  const { content, tag, joined, pushKey, now } = view;
  const { words, locale } = told;
  const { timeZone } = content;
  const asOf = new Intl.DateTimeFormat(locale, {
    timeZone,
    dateStyle: 'medium',
    timeStyle: 'short',
  }).format(now);
  return html`<main
    id="card"
    class="page ${hasEnded(content, now) && 'ended'}"
    data-at="${at}"
    data-tag="${tag}"
    data-summary="${summary(content, told)}"
    data-push-key="${pushKey ?? ''}"
  >
    <p class="panel notice offline wide" id="offline" hidden>${words.offline(asOf)}</p>
    ${
      joined &&
      html`<p class="panel wide" id="joined">
        <strong>${words.joined}</strong>
        ${joined.isLinkSent ? words.joinedWhy : words.joinedWithoutLink}
      </p>`
    }
    ${notice(content, told, now)} ${card(view, told)}
    <div class="details">${rewards(view, told)} ${keep(view, told, at)}</div>
  </main>`;
}

function card({ content, strip, now }: CardView, told: Told): Html {
  const { words, locale } = told;
  const { card: looks, storeName, stampsCount } = content;
  const isEnded = hasEnded(content, now);
  const numbers = new Intl.NumberFormat(locale);
  const balance = `${numbers.format(stampsCount)} / ${numbers.format(looks.stampsRequired)}`;
  return html`<article class="card" aria-label="${looks.name}">
    <div class="top">
      <div>
        <p>${looks.headerText ?? storeName}</p>
        <h1>${looks.name}</h1>
      </div>
      <p class="count"><span class="label">${words.stamps}</span> <strong>${balance}</strong></p>
    </div>
    ${picture(strip, summary(content, told))} ${fields(content, isEnded, told)}
    <figure>
      ${qrCode(content.code, words.qrCode(content.code))}
      <figcaption>
        <span class="code">${content.code}</span>${!isEnded && words.showCode}
      </figcaption>
    </figure>
  </article>`;
}

function picture(strip: StripLinks, alt: string): Html {
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

function fields(
  { memberName, stampsToReward, card: looks }: PassContent,
  isEnded: boolean,
  told: Told,
): Html | null {
  const { words } = told;
  const shown: [string, string][] = [];
  if (memberName !== null) shown.push([words.member, memberName]);
  if (!isEnded && stampsToReward !== null && stampsToReward > 0) {
    shown.push([words.toReward, counted(words.stampCount, stampsToReward, told)]);
  }
  for (const { label, value } of looks.auxiliaryFields) shown.push([label ?? '', value]);
  if (shown.length === 0) return null;
  return html`<dl class="fields">
    ${shown.map(
      ([label, value]) =>
        html`<div>
          <dt class="label">${label}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

function rewards({ content, now }: CardView, told: Told): Html | null {
  const { rewards: all } = content;
  if (all.length === 0) return null;
  const isEnded = hasEnded(content, now);
  return html`<section class="panel" aria-labelledby="rewards">
    <h2 id="rewards">${told.words.rewards}</h2>
    <ul>
      ${all.map((reward) => rewardItem(reward, content.stampsCount, isEnded, told))}
    </ul>
  </section>`;
}

function rewardItem(reward: PassReward, stampsCount: number, isEnded: boolean, told: Told): Html {
  const { words } = told;
  const { name, description, stampsRequired, available } = reward;
  const missing = stampsRequired - stampsCount;
  const state = available
    ? html`<span class="state ready">${words.ready}</span>`
    : html`<span class="state">${counted(words.toGo, missing, told)}</span>`;
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

/** How to keep the card: in a wallet, and by what the script offers. */
function keep(view: CardView, told: Told, at: string): Html | null {
  const { content, device, wallets, pushKey, now } = view;
  if (hasEnded(content, now)) return null;
  const { words } = told;
  const apple = wallets.apple && device !== 'android';
  const google = wallets.google && device !== 'apple';
  return html`<section class="buttons" aria-label="${words.onYourPhone}">
    ${apple && html`<a class="button" href="${at}/apple">${words.addToApple}</a>`}
    ${google && html`<a class="button" href="${at}/google">${words.addToGoogle}</a>`}
    <button class="button quiet" type="button" id="install" hidden>${words.install}</button>
    ${
      pushKey !== null &&
      html`<button
          class="button quiet"
          type="button"
          id="notify"
          data-on="${words.notifyMe}"
          data-off="${words.stopNotifying}"
          hidden
        >
          ${words.notifyMe}
        </button>
        <p class="hint" id="blocked" role="alert" hidden>${words.notificationsBlocked}</p>
        <p class="hint" id="failed" role="alert" hidden>${words.notificationsFailed}</p>`
    }
    <p class="hint" id="by-hand" hidden>${words.installByHand}</p>
    ${validity(content, told)}
  </section>`;
}

function validity(content: PassContent, told: Told): Html | null {
  if (content.expiresAt === null) return null;
  return html`<p class="hint">${told.words.validUntil(day(content.expiresAt, content, told))}</p>`;
}

function notice(content: PassContent, told: Told, now: Date): Html | null {
  if (content.expiresAt === null || !isExpired(content, now)) return null;
  const text = told.words.expired(day(content.expiresAt, content, told));
  return html`<p class="panel notice wide">${text}</p>`;
}

function hasEnded(content: PassContent, now: Date): boolean {
  return content.state === 'void' || isExpired(content, now);
}

/** What the card holds, in one sentence. */
export function summary(
  { stampsCount, card: { stampsRequired } }: PassContent,
  told: Told,
): string {
  const { words, locale } = told;
  if (stampsCount > stampsRequired) return counted(words.stampsBeyond, stampsCount, told);
  const numbers = new Intl.NumberFormat(locale);
  return words.stampsOf(numbers.format(stampsCount), numbers.format(stampsRequired));
}

export function counted(
  say: (text: string, count: number) => string,
  count: number,
  { locale }: Told,
): string {
  return say(new Intl.NumberFormat(locale).format(count), count);
}

function day(at: string, { timeZone }: PassContent, { locale }: Told): string {
  return new Intl.DateTimeFormat(locale, { timeZone, dateStyle: 'long' }).format(new Date(at));
}

type Parts = { lang: string; title: string; style: string; head: Html; body: Html };

function page({ lang, title, style, head, body }: Parts): Page {
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
  // Indentation is for people who read this file.
  return { body: text.replace(/\n +/g, '\n'), policy: policyOf(style) };
}

/** The one inline thing is the style, which is allowed by its hash: a page kept for later stays whole without a request. */
function policyOf(style: string): string {
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
