import { randomBytes } from 'node:crypto';
import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { RejectedError } from '#platform/kernel/errors.js';
import { loadPart } from '#platform/kernel/templates.js';
import type { AuthenticatedRequest } from '#platform/http/caller.js';
import { TakesForm, type Form } from '#platform/http/body-kinds.js';
import { negotiateLanguage } from '#platform/http/negotiation.js';
import {
  getCustomerTranslations,
  getTranslations,
  LANGUAGE_CODES,
  type Translations,
} from '#translations/translations.js';
import { chooseRoute, type Route } from '#outbound/messages/message-channel.js';
import { assertOwnSite } from '#web/pages/own-site.js';
import { PageError } from '#web/pages/page-error.js';
import { CapReachedError } from '#platform/event-store/port/caps.js';
import { CustomerQuota } from '#loyalty/customers/customer-quota.service.js';
import { loadView } from '#web/pages/view.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import { RememberedCards } from '#web/web-card/remembered-cards.service.js';
import { redirectTo, showPublicPage, PageResult } from '#web/pages/page-results.js';
import { NOTHING_TYPED, parseSignup, type Signup } from './signup-form.js';
import { SignupLimits } from './signup-limits.service.js';
import { findAvailability, type SignupPoster } from './signup-poster.js';
import { SignupPosters } from './signup-posters.service.js';
import {
  createSignupView,
  type FormState,
  type SignupPictures,
  type SignupView,
} from './signup-view.js';
import { listContacts, Signups } from './signups.service.js';
import { joinNames } from '#web/pages/join-names.js';

type AlreadyView = Pick<SignupView, 'storeName' | 'isNameInLogo' | 'logo'> &
  Record<'title' | 'text' | 'open' | 'card' | 'other' | 'form', string>;
type NoticeView = { storeName: string; title: string; text: string };

const FORM = loadView<SignupView>(import.meta.url, './views/signup.eta');
loadPart('birthday', import.meta.url, './views/birthday.eta');
const ALREADY = loadView<AlreadyView>(import.meta.url, './views/already.eta');
const NOTICE = loadView<NoticeView>(import.meta.url, './views/notice.eta');

const NONCE_BYTES = 16;

/** Serves the page that the code on a poster leads to: a form, and then the card. It needs no session. */
@Controller('join/:slug')
export class SignupController {
  constructor(
    private readonly posters: SignupPosters,
    private readonly signups: Signups,
    private readonly limits: SignupLimits,
    private readonly quota: CustomerQuota,
    private readonly images: PassImages,
    private readonly remembered: RememberedCards,
    private readonly config: Config,
  ) {}

  @Get()
  async show(
    @Param('slug') slug: string,
    @Query('new') isNew: unknown,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const signupPoster = await this.findOpen(slug, request, reply);
    if (signupPoster instanceof PageResult) return signupPoster;
    const uuid = this.remembered.find(request, signupPoster.card.id);
    return isNew === undefined && uuid !== undefined && (await this.signups.isOpenable(uuid))
      ? this.showAlready(signupPoster, uuid)
      : this.showForm(signupPoster, {});
  }

  @Post()
  @TakesForm()
  async send(
    @Param('slug') slug: string,
    @Query('src') source: unknown,
    @Body() body: Form,
    @Req() request: AuthenticatedRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<PageResult> {
    const signupPoster = await this.findOpen(slug, request, reply);
    if (signupPoster instanceof PageResult) return signupPoster;
    const refused = this.refuseOtherSite(signupPoster, request);
    if (refused) return refused;
    const parsed = parseSignup(body, signupPoster, getNow());
    const { values } = parsed;
    const { poster, store } = signupPoster;
    const busySeconds =
      (await this.limits.countAddress(request.ip)) ??
      ('signup' in parsed
        ? ((await this.limits.countPoster(poster.id, request.ip)) ??
          (await this.limits.countStore(store.id, request.ip)))
        : null);
    if (busySeconds !== null) {
      reply.header('retry-after', busySeconds);
      return this.showForm(signupPoster, { values, busySeconds }, 429);
    }
    if ('errors' in parsed) {
      return this.showForm(signupPoster, { values, errors: parsed.errors }, 422);
    }
    try {
      const { requestId, ip } = request;
      const cardId = signupPoster.card.id;
      const contacts = listContacts(parsed.signup);
      const former = this.remembered.findByContacts(request, cardId, contacts);
      if (former !== undefined && (await this.signups.isOpenable(former))) {
        return redirectTo(`/passes/${former}`);
      }
      const { uuid, heldChannels } = await this.signups.signUp(signupPoster, parsed.signup, {
        requestId,
        ip,
        // The form has no address of its own, so it is sent to that of its page.
        isScanned: source === 'qr',
      });
      this.remembered.remember(request, reply, { cardId, uuid }, contacts);
      const route = this.routeTo(parsed.signup, signupPoster);
      const isSent = route.kind === 'send' && !heldChannels.includes(route.channel);
      const joined = isSent ? '1' : 'unsent';
      return redirectTo(`/passes/${uuid}?joined=${joined}`);
    } catch (error) {
      const isClosed =
        error instanceof CapReachedError ||
        (error instanceof RejectedError && 'card_id' in error.errors);
      // The poster or its card was closed just now, or the last customer has come.
      if (!isClosed) throw error;
      return showClosed(signupPoster);
    }
  }

  /** Chooses the channel by the entered contacts alone: the page must not reveal who is a customer. */
  private routeTo({ email, phone }: Signup, { store }: SignupPoster): Route {
    const { mail, sms } = this.config;
    const channels = { email: mail !== null, sms: sms !== null };
    return chooseRoute({ email, phone }, { ...channels, smsCountries: store.smsCountries });
  }

  /** Finds an open poster. @returns otherwise the page that says why it is not open */
  private async findOpen(
    slug: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<SignupPoster | PageResult> {
    const signupPoster = await this.posters.find(slug);
    const state = signupPoster ? findAvailability(signupPoster, getNow()) : 'gone';
    // Closed for everybody, so that the page does not reveal who is a customer already.
    const isFull =
      signupPoster &&
      state === 'open' &&
      (await this.quota.isFullForSignups(signupPoster.store.id));
    if (signupPoster && state === 'open' && !isFull) return signupPoster;
    if (signupPoster && state !== 'gone') return showClosed(signupPoster);
    const locale = signupPoster ?? negotiateLanguage(request, LANGUAGE_CODES, reply);
    return showNotice(404, locale, ({ gone, goneWhy }) => [gone, goneWhy]);
  }

  /** Refuses a form of another site. @returns the page that says so; undefined: the form is ours */
  private refuseOtherSite(
    signupPoster: SignupPoster,
    request: FastifyRequest,
  ): PageResult | undefined {
    try {
      assertOwnSite(request, this.config.publicUrl);
      return undefined;
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      return showNotice(error.status, signupPoster, ({ elsewhere, elsewhereWhy }) => [
        elsewhere,
        elsewhereWhy,
      ]);
    }
  }

  private async showForm(
    signupPoster: SignupPoster,
    state: Partial<FormState>,
    status = 200,
  ): Promise<PageResult> {
    const { poster, store } = signupPoster;
    const localization = getCustomerTranslations(store);
    const { pictures, preview, icon } = await this.findPictures(signupPoster);
    const data = createSignupView(
      signupPoster,
      {
        values: NOTHING_TYPED,
        errors: { form: null, fields: {} },
        busySeconds: null,
        nonce: randomBytes(NONCE_BYTES).toString('base64url'),
        ...state,
      },
      pictures,
      localization,
    );
    return showPublicPage({
      view: FORM,
      title: joinNames(poster.title, store.name),
      lang: localization.locale,
      status,
      colors: getColors(signupPoster),
      cardColors: { ground: signupPoster.card.cardColor, text: signupPoster.card.textColor },
      icon,
      preview: {
        title: joinNames(poster.title, store.name),
        description: data.intro,
        image: preview,
      },
      data,
    });
  }

  /** Shows a page that leads a phone to the card that it has signed up for. */
  private async showAlready(signupPoster: SignupPoster, uuid: string): Promise<PageResult> {
    const { poster, card, store } = signupPoster;
    const { t, locale: lang } = getCustomerTranslations(store);
    const { pictures, icon } = await this.findPictures(signupPoster);
    const title = t.signup.already;
    return showPublicPage({
      view: ALREADY,
      title,
      lang,
      colors: getColors(signupPoster),
      icon,
      data: {
        storeName: store.name,
        isNameInLogo: pictures.logo !== null && store.logoContainsName,
        logo: pictures.logo,
        title,
        text: t.signup.alreadyWhy({ card: card.name }),
        open: t.signup.openCard,
        card: `/passes/${uuid}`,
        other: t.signup.someoneElse,
        form: `/join/${poster.slug}?new=1`,
      },
    });
  }

  /** Finds the pictures of a new card and of the logo, as paths, and one for links to the page. */
  private async findPictures({ poster, card, offers, store }: SignupPoster): Promise<{
    pictures: SignupPictures;
    preview: string;
    icon: string | undefined;
  }> {
    const toPath = (url: string) => new URL(url).pathname;
    const { strip, brand } = await this.images.createLinks({
      accountId: store.id,
      card,
      logo: store.logo,
      offers,
      stampsCount: card.initialStamps,
    });
    const logo =
      store.logo === null
        ? null
        : await this.images.createLogoLinks(store.id, store.logo, poster.primaryColor);
    return {
      pictures: {
        strip: { '1x': toPath(strip['1x']), '2x': toPath(strip['2x']) },
        logo: logo && { '1x': toPath(logo.urls['wide@1x']), '2x': toPath(logo.urls['wide@2x']) },
      },
      preview: strip.hero,
      icon: brand ? toPath(brand.urls['app@192']) : undefined,
    };
  }
}

function showClosed(signupPoster: SignupPoster): PageResult {
  return showNotice(410, signupPoster, ({ closed, closedWhy }) => [closed, closedWhy]);
}

/** Shows a notice. @param of the poster whose store it is for, or a locale without a poster */
function showNotice(
  status: number,
  of: SignupPoster | string,
  select: (t: Translations['signup']) => [title: string, text: string],
): PageResult {
  const signupPoster = typeof of === 'string' ? undefined : of;
  const localization =
    typeof of === 'string' ? getTranslations(of) : getCustomerTranslations(of.store);
  const [title, text] = select(localization.t.signup);
  return showPublicPage({
    view: NOTICE,
    title,
    lang: localization.locale,
    status,
    ...(signupPoster && { colors: getColors(signupPoster) }),
    data: { storeName: signupPoster?.store.name ?? '', title, text },
  });
}

function getColors({ poster }: SignupPoster): { ground: string; text: string } {
  return { ground: poster.primaryColor, text: poster.textColor };
}
