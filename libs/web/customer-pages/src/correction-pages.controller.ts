import { Body, Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { ForbiddenError, NotFoundError } from '#kernel/errors.js';
import { parsePublicEventId } from '#kernel/public-id.js';
import { readFields } from '#http/dtos.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { parsePathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import { CustomersService } from '#customers/customers.service.js';
import { HistoryService } from '#history/history.service.js';
import { isAllowed } from '#identity/roles.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { loadView } from '#pages/view.js';
import { NO_FORM_ERRORS, toRefusal, type FormErrors } from '#pages/form-errors.js';
import { AdjustCustomerCard, ReverseCardEvent } from '#stamping/corrections.commands.js';
import { AdjustDto, ReverseDto } from '#stamping/customer-card.dto.js';
import { CustomerCardsService } from '#stamping/customer-cards.service.js';
import { renderName } from './customer-list.controller.js';
import { buildCustomerPath } from './customer-list-page.js';
import { Timeline } from './timeline.service.js';

const REASONS = ['wrong_card', 'twice', 'returned', 'other'] as const;

type CorrectionView = {
  about: string;
  action: string;
  back: string;
  receipt: string;
  errors: FormErrors;
};

type UndoView = CorrectionView & { reason: string; other: string; reasons: readonly string[] };

type AdjustView = CorrectionView & {
  balance: string;
  values: { direction: string; stamps: string; reason: string };
};

type CardParameters = { id: string; customer_card_id: string };
type EventParameters = CardParameters & { event_id: string };

const undoView = loadView<UndoView>(import.meta.url, './views/undo.eta');
const adjustView = loadView<AdjustView>(import.meta.url, './views/adjust.eta');

/** Serves the pages that put a balance right: undo an entry, or add and take off stamps. */
@Controller('app/stores/:account_id/customers/:id/cards/:customer_card_id')
export class CorrectionPagesController {
  constructor(
    private readonly pages: Pages,
    private readonly forms: SubmittedForms,
    private readonly commands: CommandBus,
    private readonly customers: CustomersService,
    private readonly customerCards: CustomerCardsService,
    private readonly history: HistoryService,
    private readonly timeline: Timeline,
  ) {}

  @Get('events/:event_id/undo')
  @RequiresOperation('reverseCardEvent')
  async askToUndo(
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: EventParameters,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendUndo(request, reply, store, user, path, {
      reason: REASONS[0],
      other: '',
      errors: NO_FORM_ERRORS,
      receipt: this.forms.createReceipt(),
    });
  }

  @Post('events/:event_id/undo')
  @RequiresOperation('reverseCardEvent')
  @TakesForm()
  @Throttle(60)
  async undo(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param() path: EventParameters,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const { reasons } = localization.t.customerPages.undo;
    const ids = parseCardParameters(path);
    const { customer_id: customerId } = await this.customerCards.get(store.id, ids);
    const reason = form['reason'] ?? '';
    const other = form['other'] ?? '';
    const isPreset = reason !== 'other' && Object.hasOwn(reasons, reason);
    const staffId = isAllowed(store.role, 'reverseCardEvent.any') ? undefined : user.userId;
    const submitted = { userId: user.userId, action: request.url, form, subjectId: customerId };
    try {
      const body = readFields(ReverseDto, {
        reason: isPreset ? reasons[reason as keyof typeof reasons] : other,
      });
      await this.forms.executeOnce(submitted, (keyed) =>
        this.commands.execute(
          new ReverseCardEvent({ ...context, keyed }, ids, path.event_id, body.reason, staffId),
        ),
      );
    } catch (error) {
      const errors =
        error instanceof ForbiddenError
          ? { fields: {}, text: localization.t.customerPages.tooLate }
          : toRefusal(error, localization);
      const receipt = form['receipt'] ?? '';
      return this.sendUndo(request, reply, store, user, path, { reason, other, errors, receipt });
    }
    await this.pages.redirect(reply, `${buildCustomerPath(store, customerId)}?done=undone`);
  }

  @Get('adjust')
  @RequiresOperation('adjustCustomerCard')
  async showForm(
    @CurrentStore() store: EnteredStore,
    @Param() path: CardParameters,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.sendForm(request, reply, store, path, {
      values: { direction: 'add', stamps: '1', reason: '' },
      errors: NO_FORM_ERRORS,
      receipt: this.forms.createReceipt(),
    });
  }

  @Post('adjust')
  @RequiresOperation('adjustCustomerCard')
  @TakesForm()
  @Throttle(60)
  async adjust(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Param() path: CardParameters,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const ids = parseCardParameters(path);
    const { customer_id: customerId } = await this.customerCards.get(store.id, ids);
    const { direction = 'add', stamps = '', reason = '', receipt = '' } = form;
    try {
      // What is no number from 1 is refused by the field.
      const count = /^[1-9]\d{0,6}$/.test(stamps.trim()) ? Number(stamps) : 0;
      const body = readFields(AdjustDto, {
        stamps: direction === 'remove' ? -count : count,
        reason,
      });
      const correction = { stamps: body.stamps, reason: body.reason, externalRef: null };
      await this.forms.executeOnce(
        { userId, action: request.url, form, subjectId: customerId },
        async (keyed) =>
          (
            await this.commands.execute(
              new AdjustCustomerCard({ ...context, keyed }, ids, correction),
            )
          ).body,
      );
    } catch (error) {
      const errors = toRefusal(error, this.pages.localize(request));
      const values = { direction, stamps, reason };
      return this.sendForm(request, reply, store, path, { values, errors, receipt });
    }
    await this.pages.redirect(reply, `${buildCustomerPath(store, customerId)}?done=corrected`);
  }

  private async sendUndo(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    { userId }: SignedInUser,
    path: EventParameters,
    state: Pick<UndoView, 'reason' | 'other' | 'errors' | 'receipt'>,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const { t: translations } = localization;
    const t = translations.customerPages.undo;
    const ids = parseCardParameters(path);
    const { customer_id: customerId } = await this.customerCards.get(store.id, ids);
    const customer = await this.customers.get(store.id, customerId);
    const eventId = parsePublicEventId(path.event_id);
    if (eventId === undefined) throw new NotFoundError('Event');
    const entry = await this.history.getOfCustomerCard(store.id, ids.id, eventId);
    const { what, at } = await this.timeline.describe({ store, userId, localization }, entry);
    const name = renderName(customer, translations.customerPages.person.erased);
    await this.pages.send(request, reply, {
      view: undoView,
      title: t.title,
      width: 'form',
      status: state.errors === NO_FORM_ERRORS ? 200 : 422,
      data: {
        about: t.about({ name, what, when: at }),
        action: `${buildCardPath(store, ids)}/events/${path.event_id}/undo`,
        back: buildCustomerPath(store, customerId),
        reasons: REASONS,
        ...state,
      },
    });
  }

  private async sendForm(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    path: CardParameters,
    state: Pick<AdjustView, 'values' | 'errors' | 'receipt'>,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const { t: translations } = localization;
    const t = translations.customerPages.adjust;
    const ids = parseCardParameters(path);
    const card = await this.customerCards.get(store.id, ids);
    const customer = await this.customers.get(store.id, card.customer_id);
    const name = renderName(customer, translations.customerPages.person.erased);
    await this.pages.send(request, reply, {
      view: adjustView,
      title: t.title,
      width: 'form',
      status: state.errors === NO_FORM_ERRORS ? 200 : 422,
      data: {
        about: t.about({ name, card: card.card_name }),
        balance: t.now({ count: card.stamps_count }),
        action: `${buildCardPath(store, ids)}/adjust`,
        back: buildCustomerPath(store, card.customer_id),
        ...state,
      },
    });
  }
}

function parseCardParameters(path: CardParameters): { customerId: number; id: number } {
  return { customerId: parsePathId(path.id), id: parsePathId(path.customer_card_id) };
}

function buildCardPath(
  store: EnteredStore,
  { customerId, id }: { customerId: number; id: number },
): string {
  return `${buildCustomerPath(store, customerId)}/cards/${id}`;
}
