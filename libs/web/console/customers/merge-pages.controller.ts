import { Controller, Param, Query } from '@nestjs/common';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { parsePathId } from '#platform/http/path.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import type { CustomerJson } from '#loyalty/customers/customer.dto.js';
import { CustomersService } from '#loyalty/customers/customers.service.js';
import { MergePreviews, type MergePreview } from '#loyalty/customers/merge-preview.service.js';
import { MergeCustomers, UnmergeCustomers } from '#loyalty/customers/merging.commands.js';
import {
  ConsoleContext,
  CurrentStore,
  type EnteredStore,
  Localized,
  GetPage,
  PostForm,
} from '#web/pages/current-user.js';
import { describeRejection, type Rejectable } from '#web/pages/form-errors.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { loadView } from '#web/pages/view.js';
import type { Localization } from '#translations/translations.js';
import { type PageResult, showPage, redirectTo, askToConfirm } from '#web/pages/page-results.js';
import { isOpen } from './customer-view.service.js';
import { linkToCustomer, listCards, renderName } from './customer-list.controller.js';
import { buildCustomerPath, parseListFilter } from './customer-list-page.js';

type Summary = { name: string; contact: string[]; cards: string[] };

type SearchView = {
  title: string;
  base: string;
  search: string;
  lines: (Summary & { path: string })[];
};

type PreviewView = {
  survivor: Summary;
  other: Summary;
  takes: string[];
  hidden: string[];
  consents: string[];
  cards: { name: string; result: string }[];
  action: string;
  swap: string;
  back: string;
};

const searchView = loadView<SearchView>(import.meta.url, './views/merge-search.eta');
const previewView = loadView<PreviewView>(import.meta.url, './views/merge-preview.eta');

const MAX_MATCHES = 10;
type Pair = { id: string; other_id: string };

/** Serves the pages that merge two customers who are one person, and undo that. */
@Controller('app/stores/:account_id/customers/:id')
export class MergePagesController {
  constructor(
    private readonly commands: FormCommands,
    private readonly customers: CustomersService,
    private readonly cards: CardsService,
    private readonly previews: MergePreviews,
  ) {}

  @GetPage('mergeCustomers', 'merge')
  async search(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query() query: Record<string, unknown>,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const customer = await this.customers.get(store.id, parsePathId(path));
    if (!isOpen(customer)) return redirectTo(buildCustomerPath(store, customer.id));
    const t = localization.t.customerPages;
    const filter = parseListFilter(query);
    // Two entries of one person mostly share a part of the name.
    const [name = ''] = (customer.last_name ?? customer.first_name).split(/[\s-]+/);
    const search = filter.search === '' ? name : filter.search;
    const { customers } = await this.customers.list(
      store.id,
      {
        search,
        reference: null,
        email: null,
        phone: null,
        code: null,
        updatedSince: null,
        birthdayMonth: null,
        inactiveSince: null,
        cardId: null,
        minStamps: null,
      },
      { page: 1, items: MAX_MATCHES + 1 },
    );
    const base = `${buildCustomerPath(store, customer.id)}/merge`;
    return showPage({
      view: searchView,
      title: t.merge.title({ name: renderName(customer, t.person.erased) }),
      breadcrumb: linkToCustomer(store, customer, localization.t),
      data: {
        title: t.merge.title({ name: renderName(customer, t.person.erased) }),
        base,
        search,
        lines: customers
          .filter(
            ({ id, erased_at, merged_into }) => id !== customer.id && !erased_at && !merged_into,
          )
          .slice(0, MAX_MATCHES)
          .map((match) => ({ ...toSummary(match, localization), path: `${base}/${match.id}` })),
      },
    });
  }

  @GetPage('mergeCustomers', 'merge/:other_id')
  async preview(
    @CurrentStore() store: EnteredStore,
    @Param() path: Pair,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    return this.showMergePreview(localization, store, path, {});
  }

  @PostForm('mergeCustomers', 'merge/:other_id')
  async merge(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param() path: Pair,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const pair = parsePair(path);
    try {
      await this.commands.execute(new MergeCustomers(context, pair));
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showMergePreview(localization, store, path, { errors });
    }
    const { survivorId } = pair;
    return redirectTo(`${buildCustomerPath(store, survivorId)}?done=merged`);
  }

  @GetPage('unmergeCustomers', 'unmerge/:other_id')
  async askToUnmerge(
    @CurrentStore() store: EnteredStore,
    @Param() path: Pair,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const { survivorId, otherId } = parsePair(path);
    const [survivor, other] = await Promise.all(
      [survivorId, otherId].map((id) => this.customers.get(store.id, id)),
    );
    const { t } = localization;
    const { undoTitle, undoText, undoYes, undoNo } = t.customerPages.merge;
    const names = [survivor, other].map(
      (customer) => customer && renderName(customer, t.customerPages.person.erased),
    );
    const base = buildCustomerPath(store, survivorId);
    return askToConfirm({
      question: undoTitle,
      about: names.join(' + '),
      text: undoText,
      yes: undoYes,
      no: undoNo,
      back: base,
    });
  }

  @PostForm('unmergeCustomers', 'unmerge/:other_id')
  async unmerge(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param() path: Pair,
    @Localized() localization: Localization,
  ): Promise<PageResult> {
    const pair = parsePair(path);
    const base = buildCustomerPath(store, pair.survivorId);
    try {
      await this.commands.execute(new UnmergeCustomers(context, pair));
    } catch (error) {
      const errors = describeRejection(error, localization);
      return this.showMergePreview(localization, store, path, { errors });
    }
    return redirectTo(`${base}?done=unmerged`);
  }

  private async showMergePreview(
    localization: Localization,
    store: EnteredStore,
    path: Pair,
    state: Rejectable,
  ): Promise<PageResult> {
    const { survivorId, otherId } = parsePair(path);
    const { t: translations } = localization;
    const t = translations.customerPages;
    const [survivor, other] = await Promise.all([
      this.customers.get(store.id, survivorId),
      this.customers.get(store.id, otherId),
    ]);
    const { preview, errors } = await this.findPreview(store, path, localization);
    const designs = new Map(
      (await listCards(this.cards, store.id, 'all')).map(({ id, name }) => [id, name]),
    );
    return showPage({
      view: previewView,
      title: t.merge.previewTitle,
      width: 'form',
      breadcrumb: linkToCustomer(store, survivor, translations),
      errors: state.errors ?? errors,
      data: {
        survivor: toSummary(survivor, localization),
        other: toSummary(other, localization),
        takes: renderTaken(preview, localization),
        hidden: preview ? renderHidden(survivor, other, preview, localization) : [],
        consents: (preview?.consents ?? []).map((consent) => t.person[consent]),
        cards: (preview?.cards ?? []).map((card) => ({
          name: designs.get(card.cardId) ?? '',
          result: renderResult(card, localization),
        })),
        // Nothing can be sent that is refused for certain.
        action: preview ? `${buildCustomerPath(store, survivorId)}/merge/${otherId}` : '',
        swap: `${buildCustomerPath(store, otherId)}/merge/${survivorId}`,
        back: buildCustomerPath(store, survivorId),
      },
    });
  }

  private async findPreview(
    store: EnteredStore,
    path: Pair,
    localization: Localization,
  ): Promise<Rejectable & { preview: MergePreview | null }> {
    try {
      return { preview: await this.previews.preview(store.id, parsePair(path)) };
    } catch (error) {
      return { preview: null, errors: describeRejection(error, localization) };
    }
  }
}

function parsePair({ id, other_id }: Pair): { survivorId: number; otherId: number } {
  return { survivorId: parsePathId(id), otherId: parsePathId(other_id) };
}

function toSummary(customer: CustomerJson, { t }: Localization): Summary {
  return {
    name: renderName(customer, t.customerPages.person.erased),
    contact: [customer.email, customer.phone].filter((value) => value !== null),
    cards: customer.customer_cards.map(
      ({ card_name, stamps_count }) =>
        `${card_name}: ${t.customerPages.person.stamps({ count: stamps_count })}`,
    ),
  };
}

function renderTaken(
  preview: MergePreview | null,
  { t: { customerPages: t, words } }: Localization,
): string[] {
  const { lastName, email, phone, birthday, metadata, externalReferences } =
    preview?.personal ?? {};
  return [
    lastName && `${t.form.lastName}: ${lastName}`,
    email && `${t.form.email}: ${email}`,
    phone && `${t.form.phone}: ${phone}`,
    birthday && `${words.birthday}: ${birthday}`,
    metadata && t.timeline.fields.metadata,
    externalReferences && t.timeline.fields.external_references,
  ].filter((line) => typeof line === 'string');
}

/** Lists what the other entry has and the merged customer does not show. To undo the merge brings it back. */
function renderHidden(
  survivor: CustomerJson,
  other: CustomerJson,
  { personal: { lastName, email, phone, birthday } }: MergePreview,
  { t: { customerPages: t, words } }: Localization,
): string[] {
  const fields = [
    [t.form.firstName, other.first_name, survivor.first_name],
    [t.form.lastName, other.last_name, lastName ?? survivor.last_name],
    [t.form.email, other.email, email ?? survivor.email],
    [t.form.phone, other.phone, phone ?? survivor.phone],
    [words.birthday, other.birthday, birthday ?? survivor.birthday],
  ] as const;
  return fields
    .filter(([, value, mergedValue]) => value !== null && value !== mergedValue)
    .map(([label, value]) => `${label}: ${value}`);
}

function renderResult(
  { stamps, added, isMoved }: MergePreview['cards'][number],
  localization: Localization,
): string {
  const t = localization.t.customerPages.merge;
  if (isMoved) return t.cardMoved({ count: stamps });
  return added === 0
    ? t.cardKept({ count: stamps })
    : t.cardAdded({ now: stamps, added, total: stamps + added });
}
