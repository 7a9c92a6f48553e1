import { Controller, Query } from '@nestjs/common';
import { findMomentOfDay } from '#platform/kernel/zoned-time.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import type { HistoryFilter } from '#loyalty/history/history-query.js';
import { Members } from '#identity/members.service.js';
import { isAllowed } from '#identity/roles.js';
import { LocationsService } from '#loyalty/locations/locations.service.js';
import {
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
} from '#web/pages/current-user.js';
import { isDay } from '#web/pages/local-time.js';
import { loadView } from '#web/pages/view.js';
import { StoreTimes } from '#web/pages/store-times.service.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, showPage } from '#web/pages/page-results.js';
import { parsePositiveInteger } from '#web/pages/page-query.js';
import { listCards, renderName } from './customer-list.controller.js';
import { createFilterChips, describeDays, type FilterChip } from '#web/pages/filter-chips.js';
import { readText } from './customer-list-page.js';
import { Timeline, type TimelinePage } from './timeline.service.js';

type Choices = { value: string; text: string }[];

/** The filter of the page, as its form sends it. */
type Fields = {
  type: string;
  actor: string;
  card_id: string;
  location_id: string;
  customer_id: string;
  from: string;
  to: string;
};

type HistoryView = {
  base: string;
  fields: Fields;
  chips: FilterChip[];
  kinds: Choices;
  actors: Choices;
  cards: Choices;
  locations: Choices;
  timeline: TimelinePage;
  newest: string;
  older: string;
  /** The path of the audit log, for those who may see it. */
  log: string;
};

const view = loadView<HistoryView>(import.meta.url, './views/history.eta');

/** With all filters, a page of as many lines is just below 30 KB. */
const PAGE_SIZE = 30;
const ACTOR = /^(?:user|token|customer|system):\d{1,16}$/;
const NO_FIELDS: Fields = {
  type: '',
  actor: '',
  card_id: '',
  location_id: '',
  customer_id: '',
  from: '',
  to: '',
};

/** Shows what happened in a store. */
@Controller('app/stores/:account_id/history')
export class HistoryPageController {
  constructor(
    private readonly customers: CustomersService,
    private readonly cards: CardsService,
    private readonly locations: LocationsService,
    private readonly members: Members,
    private readonly timeline: Timeline,
    private readonly times: StoreTimes,
  ) {}

  @GetPage('listHistory')
  async show(
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const t = localization.t.customerPages;
    const fields = readHistoryFields(query);
    const after = readText(query['after']);
    const timeZone = await this.times.getTimeZone(store.id);
    const customerId = parsePositiveInteger(fields.customer_id);
    // Of another store it is a 404, as in the API.
    const customer = customerId === null ? null : await this.customers.get(store.id, customerId);
    const [timeline, cards, locations, actors] = await Promise.all([
      this.timeline.list({ store, userId, localization }, toHistoryFilter(fields, timeZone), {
        after: after === '' ? null : after,
        limit: PAGE_SIZE,
        showsCustomers: customer === null,
      }),
      listCards(this.cards, store.id, 'all'),
      this.locations.listStates(store.id),
      this.listActors(store, userId, localization),
    ]);
    const base = `/app/stores/${store.id}/history`;
    const narrowed = new URLSearchParams(
      Object.entries(fields).filter(([, value]) => value !== ''),
    );
    const link = (extra: Record<string, string>) =>
      `${base}?${new URLSearchParams([...narrowed, ...Object.entries(extra)]).toString()}`;
    const choices = {
      kinds: Object.entries(t.timeline.kinds).map(([value, text]) => ({ value, text })),
      actors,
      cards: cards.map(({ id, name }) => ({ value: String(id), text: name })),
      locations: locations.map(({ id, name }) => ({ value: String(id), text: name })),
    };
    const find = (options: Choices, value: string) =>
      options.find((choice) => choice.value === value)?.text;
    return showPage({
      view,
      title: t.history.title,
      data: {
        base,
        fields,
        chips: createFilterChips(base, fields, {
          type: find(choices.kinds, fields.type) ?? '?',
          actor: find(actors, fields.actor),
          card_id: find(choices.cards, fields.card_id),
          location_id: find(choices.locations, fields.location_id),
          customer_id: customer === null ? undefined : renderName(customer, t.person.erased),
          ...describeDays(fields, localization),
        }),
        ...choices,
        timeline,
        newest: after === '' ? '' : link({}),
        older: timeline.older === null ? '' : link({ after: timeline.older }),
        log: isAllowed(store.role, 'audit.read') ? `/app/stores/${store.id}/audit` : '',
      },
    });
  }

  private async listActors(
    store: EnteredStore,
    userId: number,
    { t: { customerPages: t } }: Localization,
  ): Promise<Choices> {
    const [members, tokens] = await Promise.all([
      this.members.listMembers(store.id),
      this.members.listTokens(store.id, userId, isAllowed(store.role, 'tokens.read_of_others')),
    ]);
    return [
      ...members.map(({ id, name }) => ({ value: `user:${id}`, text: name })),
      ...tokens.map(({ id, name }) => ({ value: `token:${id}`, text: t.timeline.token({ name }) })),
      { value: 'system:0', text: t.timeline.inkpad },
    ];
  }
}

/** Reads the filter; what the form cannot send narrows nothing. */
function readHistoryFields(query: Record<string, unknown>): Fields {
  const fields = Object.fromEntries(
    Object.keys(NO_FIELDS).map((name) => [name, readText(query[name]).trim().slice(0, 64)]),
  ) as Fields;
  const readId = (text: string) => String(parsePositiveInteger(text) ?? '');
  return {
    type: fields.type,
    actor: ACTOR.test(fields.actor) ? fields.actor : '',
    card_id: readId(fields.card_id),
    location_id: readId(fields.location_id),
    customer_id: readId(fields.customer_id),
    from: isDay(fields.from) ? fields.from : '',
    to: isDay(fields.to) ? fields.to : '',
  };
}

function toHistoryFilter(fields: Fields, timeZone: string): HistoryFilter {
  const toTime = (day: string, moment: 'start' | 'next') =>
    day === '' ? null : new Date(findMomentOfDay(day, moment, timeZone));
  return {
    customerId: parsePositiveInteger(fields.customer_id),
    customerCardId: null,
    cardId: parsePositiveInteger(fields.card_id),
    locationId: parsePositiveInteger(fields.location_id),
    name: fields.type === '' ? null : fields.type,
    channel: null,
    actor: fields.actor === '' ? null : fields.actor,
    from: toTime(fields.from, 'start'),
    to: toTime(fields.to, 'next'),
  };
}
