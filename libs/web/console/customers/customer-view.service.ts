import { Injectable } from '@nestjs/common';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { Config } from '#configuration/config.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import type { ConsentKind } from '#loyalty/customers/customer.events.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import type { EmailBounce } from '#loyalty/customers/email-bounces.js';
import { NO_FILTER } from '#loyalty/history/history-query.js';
import { isAllowed, type Operation } from '#identity/roles.js';
import type { EnteredStore, SignedInUser } from '#web/pages/current-user.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { findDarkModules } from '#web/web-card/qr-modules.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { CardPath } from '#loyalty/stamping/card-holder.js';
import type { CustomerCardDetailJson } from '#loyalty/stamping/customer-card.dto.js';
import { CustomerCardsService } from '#loyalty/stamping/customer-cards.service.js';
import { toDateLocale, type Localization } from '#translations/translations.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import type { Rejectable } from '#web/pages/form-errors.js';
import { listCards, renderName } from './customer-list.controller.js';
import { buildCustomerPath, describeBalance } from './customer-list-page.js';
import { Timeline, type TimelinePage, type TimelineReader } from './timeline.service.js';

/** A card of the customer. Paths are from the root of the service; empty ones are not offered. */
type CardPanel = {
  id: number;
  name: string;
  balance: string;
  count: number;
  full: number;
  state: '' | 'full' | 'expired';
  /** The path of the form that redeems one of the rewards, which the balance covers. */
  redeem: string;
  rewards: { id: number; text: string }[];
  stamp: string;
  code: string;
  /** Whether the card is on a phone, as far as the service can know; empty: it cannot. */
  phone: string;
  page: string;
  adjust: string;
  explain: string;
  sendLink: string;
  /** The link to the page, with its QR code; null: not offered. */
  handover: { link: string; path: string; side: number; isOpen: boolean } | null;
};

type PersonView = {
  base: string;
  name: string;
  contact: string[];
  /** Why nothing is sent to the e-mail address; empty: nothing is known against it. */
  bounce: string;
  flash: string;
  /** Whether the customer was added just now. */
  isNew: boolean;
  isErased: boolean;
  erasedNotice: string;
  mergedInto: string;
  may: { edit: boolean; merge: boolean; export: boolean; erase: boolean };
  cards: CardPanel[];
  /** What to do with the QR code of a card. */
  codeWhy: string;
  /** The designs that the customer has no card of. */
  otherCards: { value: string; text: string }[];
  birthday: string;
  since: string;
  consents: string[];
  references: string[];
  timeline: TimelinePage;
  /** The path of the whole history of the customer, for those who may see it. */
  history: string;
};

const view = loadView<PersonView>(import.meta.url, './views/customer.eta');

const TIMELINE_SIZE = 10;
/** Staff have no link to the rest, and may undo what they did minutes ago. */
const STAFF_TIMELINE_SIZE = 20;
const BOUNCE_REASONS: Readonly<
  Record<string, keyof Localization['t']['customerPages']['person']['bounceReasons']>
> = {
  '5.1.1': 'noMailbox',
  '5.1.2': 'noDomain',
  '5.1.3': 'noAddress',
  '5.1.6': 'moved',
  '5.1.10': 'noDomain',
  '5.2.1': 'switchedOff',
};
/** The results of forms that the page tells of. */
export type CustomerFlashName = keyof Localization['t']['customerPages']['person']['done'];

type CardFlashName = keyof Localization['t']['customerPages']['person']['cardDone'];

/** Builds the path of the page that says what was done on a card of the customer. */
export function buildCardFlashPath(
  store: EnteredStore,
  { customerId, id }: CardPath,
  done: CardFlashName,
): string {
  return `${buildCustomerPath(store, customerId)}?done=${done}&card=${id}`;
}

/** Says what was done on a card, and how many stamps it has since. */
function describeDone(
  done: unknown,
  card: { card_name: string; stamps_count: number },
  t: Localization['t']['customerPages']['person'],
): string {
  const message = findFlashMessage(done, t.cardDone, card.card_name);
  return message && done !== 'enrolled'
    ? `${message} ${t.cardNow({ count: card.stamps_count })}`
    : message;
}

/**
 * The page as it is sent.
 * @property done a CustomerFlashName, or a CardFlashName about the card with `cardId`; anything else for none
 */
export type CustomerPage = Rejectable & {
  store: EnteredStore;
  user: SignedInUser;
  customer: CustomerJson;
  done?: unknown;
  cardId?: number | null;
};

/** Renders the page of a customer. */
@Injectable()
export class CustomerView {
  constructor(
    private readonly customers: CustomersService,
    private readonly customerCards: CustomerCardsService,
    private readonly cards: CardsService,
    private readonly timeline: Timeline,
    private readonly times: StoreTimes,
    private readonly config: Config,
  ) {}

  async show(localization: Localization, page: CustomerPage): Promise<PageResult> {
    const { store, user, customer, done, cardId, errors } = page;
    const t = localization.t.customerPages.person;
    const base = buildCustomerPath(store, customer.id);
    const cards = await this.loadCards(customer);
    const bounce = await this.customers.findEmailBounce(store.id, customer.id);
    const place = {
      base,
      customer,
      store,
      localization,
      config: this.config,
      isBounced: bounce !== undefined,
      isNew: done === 'created',
    };
    const panels = cards.map((card) => toCardPanel(card, place));
    const changed = cards.find(({ id }) => id === cardId);
    const designs = await listCards(this.cards, store.id, 'active');
    const reader = { store, userId: user.userId, localization };
    const { day } = await this.times.createFormats(store.id, localization.locale);
    const mayReadHistory = isAllowed(store.role, 'listHistory');
    return showPage({
      view,
      title: renderName(customer, t.erased),
      errors,
      data: {
        base,
        ...describeCustomer(customer, localization, day),
        bounce: bounce === undefined ? '' : describeBounce(bounce, t, day),
        flash:
          done === 'sent' && !panels.some(({ sendLink }) => sendLink)
            ? ''
            : changed
              ? describeDone(done, changed, t)
              : findFlashMessage(done, t.done, renderName(customer, t.erased)),
        isNew: done === 'created',
        mergedInto:
          customer.merged_into === null ? '' : buildCustomerPath(store, customer.merged_into),
        may: findRights(store, customer),
        cards: panels,
        codeWhy: this.config.isOnlyLocal ? localization.t.words.localOnly : t.showCodeWhy,
        otherCards: isOpen(customer) ? listOtherDesigns(designs, cards) : [],
        timeline: await this.listTimeline(reader, customer, cards),
        history: mayReadHistory ? `/app/stores/${store.id}/history?customer_id=${customer.id}` : '',
      },
    });
  }

  /** Lists what happened to the cards; for managers also what happened to the customer, which staff may not see. */
  private listTimeline(
    reader: TimelineReader,
    { id }: CustomerJson,
    cards: CustomerCardDetailJson[],
  ): Promise<TimelinePage> {
    if (!isAllowed(reader.store.role, 'listHistory')) {
      const ids = cards.map((card) => card.id);
      return this.timeline.listOfCards(reader, ids, STAFF_TIMELINE_SIZE);
    }
    const page = { after: null, limit: TIMELINE_SIZE, showsCustomers: false };
    return this.timeline.list(reader, { ...NO_FILTER, customerId: id }, page);
  }

  private loadCards(customer: CustomerJson): Promise<CustomerCardDetailJson[]> {
    return Promise.all(
      customer.customer_cards.map(({ id }) =>
        this.customerCards.get(customer.account_id, { customerId: customer.id, id }),
      ),
    );
  }
}

/** Tells whether anything can be done for the customer. */
export function isOpen({ erased_at, merged_into }: CustomerJson): boolean {
  return erased_at === null && merged_into === null;
}

function findRights(store: EnteredStore, customer: CustomerJson): PersonView['may'] {
  const may = (operation: Operation) => isAllowed(store.role, operation);
  return {
    edit: isOpen(customer) && may('updateCustomer'),
    merge: isOpen(customer) && may('mergeCustomers'),
    export: may('exportCustomer'),
    erase: customer.erased_at === null && may('eraseCustomer'),
  };
}

/** Lists the designs that the customer has no card of. */
function listOtherDesigns(
  designs: CardJson[],
  cards: CustomerCardDetailJson[],
): PersonView['otherCards'] {
  const cardIds = new Set(cards.map(({ card_id }) => card_id));
  return designs
    .filter(({ id }) => !cardIds.has(id))
    .map(({ id, name }) => ({ value: String(id), text: name }));
}

function describeCustomer(
  customer: CustomerJson,
  { t: { customerPages }, locale }: Localization,
  day: (time: Date) => string,
) {
  const t = customerPages.person;
  const { email, phone, erased_at: erasedAt } = customer;
  const describeConsent = (kind: ConsentKind) =>
    customer.unconfirmed_consents.includes(kind) ? t.unconfirmed({ consent: t[kind] }) : t[kind];
  return {
    name: renderName(customer, t.erased),
    contact: [email, phone].filter((value) => value !== null),
    isErased: erasedAt !== null,
    erasedNotice: erasedAt === null ? '' : t.erasedNotice({ day: day(new Date(erasedAt)) }),
    birthday: renderBirthday(customer.birthday, locale),
    since: day(new Date(customer.created_at)),
    consents: [
      ...(customer.marketing_consent ? [describeConsent('marketing')] : []),
      ...(customer.sms_consent ? [describeConsent('sms')] : []),
    ],
    references: customer.external_references.map(
      ({ source, external_id }) => `${source}: ${external_id}`,
    ),
  };
}

/** Describes why an address gets no e-mails (RFC 3463). */
function describeBounce(
  { status, bouncedAt }: EmailBounce,
  t: Localization['t']['customerPages']['person'],
  day: (time: Date) => string,
): string {
  const reason = BOUNCE_REASONS[status] ?? 'refused';
  return t.bounced({ day: day(new Date(bouncedAt)), reason: t.bounceReasons[reason] });
}

function toCardPanel(
  card: CustomerCardDetailJson,
  {
    base,
    customer,
    store,
    localization: { t: translations },
    config,
    isBounced,
    isNew,
  }: {
    base: string;
    customer: CustomerJson;
    store: EnteredStore;
    localization: Localization;
    config: Config;
    isBounced: boolean;
    /** Whether the customer has just been added: they may be waiting to scan it. */
    isNew: boolean;
  },
): CardPanel {
  const t = translations.customerPages.person;
  const path = `${base}/cards/${card.id}`;
  const canChange = isOpen(customer);
  const isReachable =
    (config.mail !== null && customer.email !== null && !isBounced) ||
    (config.sms !== null && customer.phone !== null);
  const link = `${config.publicUrl}/passes/${card.uuid}`;
  const { status, available_rewards: rewards } = card;
  const { outcome } = translations.counter;
  const offer = (operation: Operation, action: string) =>
    canChange && isAllowed(store.role, operation) ? `${path}/${action}` : '';
  const isOpenCard = status !== 'expired';
  return {
    id: card.id,
    name: card.card_name,
    balance: describeBalance(card, t),
    count: card.stamps_count,
    full: card.stamps_count + card.stamps_remaining,
    state: status === 'expired' ? 'expired' : card.stamps_remaining === 0 ? 'full' : '',
    redeem: isOpenCard ? offer('redeemReward', 'redeem') : '',
    rewards: rewards.map(({ id, name, stamps_required: count }) => ({
      id,
      text: `${outcome.redeem({ reward: name })} (${outcome.uses({ count })})`,
    })),
    stamp: isOpenCard ? offer('stampCustomerCard', 'stamp') : '',
    code: card.code,
    phone: card.pass_installed ? t.installed : config.hasWallet ? t.notInWallet : '',
    page: canChange ? `/passes/${card.uuid}` : '',
    adjust: offer('adjustCustomerCard', 'adjust'),
    explain: `${path}/explain`,
    sendLink: isReachable ? offer('customers.send_link', 'send_link') : '',
    handover: canChange ? { link, ...findDarkModules(link, 'M'), isOpen: isNew } : null,
  };
}

/** Renders a birthday, which is in no time zone. */
function renderBirthday(birthday: string | null, locale: string): string {
  if (birthday === null) return '';
  const format = new Intl.DateTimeFormat(toDateLocale(locale), {
    dateStyle: 'long',
    timeZone: 'UTC',
  });
  return format.format(new Date(`${birthday}T00:00:00Z`));
}
