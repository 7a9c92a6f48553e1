import { Body, Controller, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { CommandContext } from '#platform/kernel/aggregate.js';
import { getNow } from '#platform/kernel/clock.js';
import { InvalidFieldsError, RejectedError } from '#platform/kernel/errors.js';
import { ISSUES } from '#translations/issues.js';
import { findPictureType, findUploadedFile, type Form } from '#platform/http/body-kinds.js';
import { parsePathId } from '#platform/http/path.js';
import type { Card } from '#loyalty/cards/card.js';
import type { CardAttributes } from '#loyalty/cards/card.events.js';
import { UpdateCard } from '#loyalty/cards/card.commands.js';
import type { CardJson } from '#loyalty/cards/card.dto.js';
import { CardsService } from '#loyalty/cards/cards.service.js';
import { LOGO, UploadedPictures, WHOLE_LOGO } from '#loyalty/cards/uploaded-pictures.service.js';
import { RemoveLogo, SetLogo, UpdateAccount } from '#loyalty/accounts/account.commands.js';
import { toAccountSettings, UpdateAccountDto } from '#loyalty/accounts/account.dto.js';
import { AccountsService } from '#loyalty/accounts/accounts.service.js';
import type { ProposedColors } from '#outbound/card-images/logo-colors.js';
import { createStripDesign } from '#outbound/card-images/strip-design.js';
import { LogoRenderer } from '#outbound/card-images/logo-renderer.service.js';
import { PassImages } from '#outbound/passes/pass-images.service.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  type EnteredStore,
  type SignedInUser,
  Localized,
  GetPage,
  PostForm,
  PostUpload,
} from '#web/pages/current-user.js';
import { FormCommands } from '#web/pages/form-commands.service.js';
import { readFields } from '#platform/http/dtos.js';
import { defineForm, type ValuesOf } from '#web/pages/forms.js';
import { loadView } from '#web/pages/view.js';
import { linkToEntry, linkToOverview } from '#web/pages/navigation.js';
import { toFormErrors, type Rejectable } from '#web/pages/form-errors.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { type PageResult, redirectTo, showPage } from '#web/pages/page-results.js';
import { CardDesigns } from '../cards/card-designs.service.js';
import { renderStripQuery } from '../cards/draft-strips.js';
import { createUndoForm, renderUndoQuery, type UndoForm } from '../cards/undo-notice.js';
import type { Localization } from '#translations/translations.js';
import { localizeRequest } from '#web/pages/localize.js';

type BrandView = {
  flash: { text: string; undo?: UndoForm | null };
  /** The logo on a light and on a dark ground; null without one. */
  logos: { ground: string; src: string }[] | null;
  storeName: string;
  isNameInLogo: boolean;
  proposals: ProposedColors[];
  cards: { value: string; text: string }[];
};

const contactForm = defineForm(UpdateAccountDto, [
  'website',
  'phone',
  'email',
  'address',
  'terms_text',
]);

/** @property fronts the card before and after @property sure how many customers see it; null: none */
type ColorsView = {
  card: number;
  proposal: string;
  fronts: { label: string; name: string; ground: string; text: string; strip: string }[];
  sure: string | null;
};

const view = loadView<BrandView>(import.meta.url, './views/brand.eta');
const colorsView = loadView<ColorsView>(import.meta.url, './views/brand-colors.eta');

const MAX_LOGO_BYTES = 2 * 1024 * 1024;
/** A store has at most 500 cards; the first ones are enough to choose from. */
const MAX_CARDS = 100;
const GROUNDS = ['#FFFFFF', '#1B1B1B'];

/** Serves the page of a store's logo, of colours proposed from it, and of its contact details. */
@Controller('app/stores/:account_id/brand')
export class BrandPagesController {
  constructor(
    private readonly commands: FormCommands,
    private readonly accounts: AccountsService,
    private readonly cards: CardsService,
    private readonly pictures: UploadedPictures,
    private readonly logos: LogoRenderer,
    private readonly images: PassImages,
    private readonly designs: CardDesigns,
  ) {}

  @GetPage('updateAccount')
  async show(
    @Query() { done, card: path, undo }: { done?: unknown; card?: unknown; undo?: unknown },
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const { t } = localization;
    const { colors, ...messages } = t.brand.done;
    if (done !== 'colors') {
      const text = findFlashMessage(done, messages);
      return this.send(localization, userId, store, { flash: { text } });
    }
    const { card } = await this.designs.get(store.id, parsePathId(String(path)));
    const text = colors({ name: card.name });
    const cards = `/app/stores/${store.id}/cards`;
    const form = createUndoForm(undo, { card, cards, page: 'brand', now: getNow() });
    return this.send(localization, userId, store, { flash: { text, undo: form } });
  }

  @PostUpload('setLogo', 'logo', MAX_LOGO_BYTES, 30)
  async setLogo(
    @ConsoleContext() context: CommandContext,
    @Req() request: FastifyRequest,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    return this.change(localizeRequest(request), userId, store, { name: 'logo' }, async () => {
      const bytes = findUploadedFile(request, 'logo');
      const type = bytes && findPictureType(bytes);
      if (!bytes) throw new InvalidFieldsError({ logo: [ISSUES.logo_missing] });
      if (!type) throw new InvalidFieldsError({ logo: [ISSUES.logo_type] });
      const { keep_margin: keep } = (request.body ?? {}) as Form;
      const use = keep === undefined ? LOGO : WHOLE_LOGO;
      const picture = await this.pictures.store(store.id, type, bytes, use);
      await this.commands.execute(new SetLogo(context, userId, picture));
    });
  }

  @PostForm('updateAccount', 'logo/name', 30)
  async setNameInLogo(
    @Body() form: Form,
    @ConsoleContext() context: CommandContext,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const changes = { logoContainsName: form['logo_contains_name'] !== undefined };
    return this.change(localization, userId, store, { name: 'name' }, () =>
      this.commands.execute(new UpdateAccount(context, userId, changes)),
    );
  }

  @PostForm('removeLogo', 'logo/remove', 30)
  async removeLogo(
    @ConsoleContext() context: CommandContext,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    return this.change(localization, userId, store, { name: 'removed' }, () =>
      this.commands.execute(new RemoveLogo(context, userId)),
    );
  }

  /** Shows a card in its colours and in the proposed ones, before it changes what customers have on their phones. */
  @GetPage('updateCard', 'colors')
  async askToApply(
    @Query() { card: path, proposal }: { card?: unknown; proposal?: unknown },
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const { t } = localization;
    const designed = await this.designs.get(store.id, parsePathId(String(path)));
    const { card, rewards, holderCount } = designed;
    const colors = await this.findColors(store.id, proposal);
    if (!colors) {
      const errors = toFormErrors(
        new RejectedError({ base: [ISSUES.colors_missing] }),
        localization,
      );
      return this.send(localization, userId, store, { errors });
    }
    const changed = { ...card, ...dressCard(card, colors) };
    const strips = `/app/stores/${store.id}/card-strips`;
    const toFront = (state: Card, label: string) => ({
      label,
      name: state.name,
      ground: state.cardColor,
      text: state.textColor,
      strip: `${strips}?${renderStripQuery({
        design: createStripDesign(state, rewards),
        filled: Math.floor(state.stampsRequired / 2),
        size: '2x',
      })}`,
    });
    return showPage({
      view: colorsView,
      title: t.brand.colors.ask,
      breadcrumb: linkToEntry(store, 'brand', t),
      data: {
        card: card.id,
        proposal: String(proposal),
        fronts: [toFront(card, t.brand.colors.before), toFront(changed, t.brand.colors.after)],
        sure: holderCount === 0 ? null : t.cardPages.sure({ count: holderCount }),
      },
      width: 'form',
    });
  }

  /** Gives a card one of the proposals. They are computed again, so that a form cannot bring colours of its own. */
  @PostForm('updateCard', 'colors', 30)
  async applyColors(
    @Body() form: Form,
    @ConsoleContext() context: CommandContext,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const id = parsePathId(form['card'] ?? '');
    const query = `card=${id}&${renderUndoQuery(getNow())}`;
    const done = { name: 'colors', query } as const;
    return this.change(localization, userId, store, done, async () => {
      const colors = await this.findColors(store.id, form['proposal']);
      if (!colors) throw new RejectedError({ base: [ISSUES.colors_missing] });
      const { card } = await this.designs.get(store.id, id);
      await this.commands.execute(new UpdateCard(context, id, dressCard(card, colors)));
    });
  }

  private async findColors(
    accountId: number,
    proposal: unknown,
  ): Promise<ProposedColors | undefined> {
    const { logo } = await this.accounts.getLogo(accountId);
    const proposals = logo === null ? [] : await this.logos.propose(accountId, logo);
    return proposals[Number(proposal ?? NaN)];
  }

  @PostForm('updateAccount', 'contact', 30)
  async setContact(
    @Body() form: Form,
    @ConsoleContext() context: CommandContext,
    @Localized() localization: Localization,
    @CurrentUser() { userId }: SignedInUser,
    @CurrentStore() store: EnteredStore,
  ): Promise<PageResult> {
    const values = contactForm.read(form);
    return this.change(
      localization,
      userId,
      store,
      { name: 'contact' },
      () => {
        const changes = toAccountSettings(readFields(UpdateAccountDto, values));
        return this.commands.execute(new UpdateAccount(context, userId, changes));
      },
      values,
    );
  }

  /** Makes a change and opens the page again, or shows why it was rejected. */
  private async change(
    localization: Localization,
    userId: number,
    store: EnteredStore,
    { name, query }: { name: keyof Localization['t']['brand']['done']; query?: string },
    execute: () => Promise<unknown>,
    values?: ValuesOf<typeof contactForm>,
  ): Promise<PageResult> {
    try {
      await execute();
    } catch (error) {
      const errors = toFormErrors(error, localization);
      return this.send(localization, userId, store, { errors, ...(values && { values }) });
    }
    const more = query === undefined ? '' : `&${query}`;
    return redirectTo(`/app/stores/${store.id}/brand?done=${name}${more}`);
  }

  private async send(
    localization: Localization,
    userId: number,
    store: EnteredStore,
    {
      flash = { text: '' },
      errors,
      values,
    }: Rejectable & { flash?: BrandView['flash']; values?: ValuesOf<typeof contactForm> },
  ): Promise<PageResult> {
    const { t } = localization;
    const account = await this.accounts.get(userId, store.id);
    const { logo } = await this.accounts.getLogo(store.id);
    return showPage({
      view,
      title: `${t.brand.title} · ${store.name}`,
      breadcrumb: linkToOverview(store, t),
      data: {
        flash,
        logos: logo === null ? null : await this.drawLogos(store.id, logo),
        storeName: account.display_store_name,
        isNameInLogo: account.logo_contains_name,
        proposals: logo === null ? [] : await this.logos.propose(store.id, logo),
        cards: logo === null ? [] : (await this.listCards(store.id)).map(toChoice),
      },
      errors,
      inputs: contactForm.toInputs(values ?? contactForm.toValues(account)),
      width: 'form',
    });
  }

  private async drawLogos(accountId: number, logo: string): Promise<BrandView['logos']> {
    return Promise.all(
      GROUNDS.map(async (ground) => {
        const { urls } = await this.images.createLogoLinks(accountId, logo, ground);
        return { ground, src: new URL(urls['wide@2x']).pathname };
      }),
    );
  }

  private listCards(accountId: number): Promise<CardJson[]> {
    const range = { after: null, limit: MAX_CARDS };
    return this.cards.list(accountId, { scope: 'active', updatedSince: null }, range);
  }
}

/**
 * Gives a card colours, and its strip with it: plain, or with its drawing in the new colour. A picture of the shop's own
 * stays as it is.
 */
function dressCard({ stripType }: Card, colors: ProposedColors): Partial<CardAttributes> {
  return { ...colors, stripColor: stripType === 'preset' ? colors.cardColor : null };
}

function toChoice({ id, name }: CardJson): BrandView['cards'][number] {
  return { value: String(id), text: name };
}
