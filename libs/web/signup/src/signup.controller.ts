import { randomBytes } from 'node:crypto';
import { Body, Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import { Config } from '#kernel/config.js';
import { RejectedError } from '#kernel/errors.js';
import type { GatedRequest } from '#http/caller.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { vary } from '#http/headers.js';
import { routeTo, type Route } from '#messages/card-message.js';
import { requireOwnSite } from '#pages/own-site.js';
import { PageError } from '#pages/page-error.js';
import { Pages } from '#pages/pages.service.js';
import { viewOf } from '#pages/view.js';
import { NOTHING_TYPED, readSignup, type Signup } from './signup-form.js';
import { SignupLimits } from './signup-limits.service.js';
import { openness, type SignupPoster } from './signup-poster.js';
import { SignupPosters } from './signup-posters.service.js';
import { signupView, type Shown, type SignupView } from './signup-view.js';
import { Signups } from './signups.service.js';
import { languages, wordsOf, type Words } from './words.js';

type SaidView = { storeName: string; title: string; text: string };

const FORM = viewOf<SignupView>(import.meta.url, './views/signup.eta');
const SAID = viewOf<SaidView>(import.meta.url, './views/said.eta');

const NONCE_BYTES = 16;

/** Where the code on a poster leads: a form, and from there to the card. For anybody, without a session. */
@Controller('join/:slug')
export class SignupController {
  constructor(
    private readonly posters: SignupPosters,
    private readonly signups: Signups,
    private readonly limits: SignupLimits,
    private readonly pages: Pages,
    private readonly config: Config,
  ) {}

  @Get()
  async show(
    @Param('slug') slug: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const found = await this.open(slug, request, reply);
    if (found) await this.sendForm(reply, found, {});
  }

  @Post()
  @TakesForm()
  async send(
    @Param('slug') slug: string,
    @Body() body: Form,
    @Req() request: GatedRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const found = await this.open(slug, request, reply);
    if (!found || !(await this.isOwn(found, request, reply))) return;
    const read = readSignup(body, found, new Date());
    const { values } = read;
    const busySeconds =
      (await this.limits.ofAddress(request.ip)) ??
      ('signup' in read ? await this.limits.ofPoster(found.poster.id, request.ip) : null);
    if (busySeconds !== null) {
      reply.status(429).header('retry-after', busySeconds);
      return this.sendForm(reply, found, { values, busySeconds });
    }
    if ('faults' in read) {
      const { faults } = read;
      reply.status(422);
      return this.sendForm(reply, found, { values, faults });
    }
    try {
      const { requestId, ip } = request;
      const { uuid, heldChannels } = await this.signups.signUp(found, read.signup, {
        requestId,
        ip,
      });
      const route = this.routeTo(read.signup, found);
      const isSent = route.kind === 'send' && !heldChannels.includes(route.channel);
      const joined = isSent ? '1' : 'unsent';
      await this.pages.redirect(reply, `/passes/${uuid}?joined=${joined}`);
    } catch (error) {
      if (!(error instanceof RejectedError) || !('card_id' in error.errors)) throw error;
      // Closed in this very moment.
      await this.sendClosed(reply, found);
    }
  }

  /** By what was entered alone: the answer must not tell who is a customer. */
  private routeTo({ email, phone }: Signup, { store }: SignupPoster): Route {
    const { mail, sms } = this.config;
    const setUp = { email: mail !== null, sms: sms !== null };
    return routeTo({ email, phone }, { ...setUp, smsCountries: store.smsCountries }, false);
  }

  /** The poster, or undefined after a page that says why there is none to sign up at. */
  private async open(
    slug: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<SignupPoster | undefined> {
    const found = await this.posters.find(slug);
    const state = found ? openness(found, new Date()) : 'gone';
    if (found && state === 'open') return found;
    if (found && state === 'closed') {
      await this.sendClosed(reply, found);
      return undefined;
    }
    if (!found) vary(reply, 'Accept-Language');
    const asked = new Negotiator(request).language(languages) ?? 'en';
    await this.say(reply, 404, found ?? asked, ({ gone, goneWhy }) => [gone, goneWhy]);
    return undefined;
  }

  /** Answers a form that another site has sent through somebody's browser. */
  private async isOwn(
    found: SignupPoster,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<boolean> {
    try {
      requireOwnSite(request, this.config.publicUrl);
      return true;
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      await this.say(reply, error.status, found, ({ elsewhere, elsewhereWhy }) => [
        elsewhere,
        elsewhereWhy,
      ]);
      return false;
    }
  }

  private async sendForm(
    reply: FastifyReply,
    found: SignupPoster,
    shown: Partial<Shown>,
  ): Promise<void> {
    const { poster, store } = found;
    const told = wordsOf(store.locale);
    const data = signupView(
      found,
      {
        values: NOTHING_TYPED,
        faults: { form: null, fields: {} },
        busySeconds: null,
        nonce: randomBytes(NONCE_BYTES).toString('base64url'),
        now: new Date(),
        ...shown,
      },
      told,
    );
    await this.pages.sendPublic(reply, {
      view: FORM,
      title: `${poster.title} · ${store.name}`,
      lang: told.locale,
      status: reply.statusCode,
      colors: colorsOf(found),
      data,
    });
  }

  private sendClosed(reply: FastifyReply, found: SignupPoster): Promise<void> {
    return this.say(reply, 410, found, ({ closed, closedWhy }) => [closed, closedWhy]);
  }

  /** @param of whose poster it is, or a language where none is known */
  private async say(
    reply: FastifyReply,
    status: number,
    of: SignupPoster | string,
    said: (words: Words) => [title: string, text: string],
  ): Promise<void> {
    const [found, locale] = typeof of === 'string' ? [undefined, of] : [of, of.store.locale];
    const told = wordsOf(locale);
    const [title, text] = said(told.words);
    await this.pages.sendPublic(reply, {
      view: SAID,
      title,
      lang: told.locale,
      status,
      ...(found && { colors: colorsOf(found) }),
      data: { storeName: found?.store.name ?? '', title, text },
    });
  }
}

function colorsOf({ poster }: SignupPoster): { ground: string; text: string } {
  return { ground: poster.primaryColor, text: poster.textColor };
}
