import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { getNowMs } from '#kernel/clock.js';
import { findMomentOfDay } from '#kernel/zoned-time.js';
import { readFields } from '#http/dtos.js';
import { TakesForm, type Form } from '#http/body-kinds.js';
import { parsePathId } from '#http/path.js';
import { Throttle } from '#http/throttle.js';
import {
  ConsoleContext,
  CurrentStore,
  CurrentUser,
  RequiresOperation,
  type EnteredStore,
  type SignedInUser,
} from '#pages/current-user.js';
import { createTimeFormats, isDay, parseLocalTime, renderLocalTime } from '#pages/local-time.js';
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { loadView } from '#pages/view.js';
import { StoreTimes } from '#pages/store-times.service.js';
import { NO_FORM_ERRORS, toRefusal, type FormErrors } from '#pages/form-errors.js';
import { PUBLIC_EVENTS, type PublicEventType } from '#public-events/public-events.js';
import { WebhookDeliveriesService } from '#subscriptions/webhook-deliveries.service.js';
import {
  ReplayDto,
  type DeliveryFilter,
  type DeliveryJson,
  type ReplayJson,
} from '#subscriptions/webhook-delivery.dto.js';
import { WebhookSubscriptionsService } from '#subscriptions/webhook-subscriptions.service.js';
import type { Localization } from '#translations/translations.js';
import { readChosen } from './webhook-form.js';
import {
  buildWebhooksPath,
  listEventChoices,
  renderAttempts,
  renderEventName,
  type AttemptLine,
  type Choices,
  type WebhookState,
} from './webhook-labels.js';

type Line = WebhookState & { path: string; event: string; created: string; attempts: string };
type Fields = { status: string; type: string; from: string; to: string };

type ListView = {
  base: string;
  back: string;
  about: string;
  fields: Fields;
  isNarrowed: boolean;
  statuses: Choices;
  events: Choices;
  lines: Line[];
  newest: string;
  older: string;
};

type DetailView = WebhookState & {
  base: string;
  list: string;
  event: string;
  id: string;
  created: string;
  next: string;
  delivered: string;
  notice: string;
  error: string;
  enabled: boolean;
  receipt: string;
  attempts: AttemptLine[];
};

type ReplayView = {
  action: string;
  back: string;
  about: string;
  zone: string;
  receipt: string;
  values: { from: string; to: string; hasEveryEvent: boolean; events: string[] };
  events: Choices;
  errors: FormErrors;
};

const listView = loadView<ListView>(import.meta.url, './views/deliveries.eta');
const detailView = loadView<DetailView>(import.meta.url, './views/delivery.eta');
const replayView = loadView<ReplayView>(import.meta.url, './views/replay.eta');

const PAGE_SIZE = 50;
const STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const MOODS = { pending: '', delivered: 'good', failed: 'bad', cancelled: 'bad' } as const;
const DAY_MS = 24 * 60 * 60_000;

type DeliveryParameters = { id: string; delivery_id: string };

/** Serves the deliveries of a webhook, and sends them again: one by one, or all of a period. */
@Controller('app/stores/:account_id/webhooks/:id')
export class WebhookDeliveriesPageController {
  constructor(
    private readonly pages: Pages,
    private readonly forms: SubmittedForms,
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly deliveries: WebhookDeliveriesService,
    private readonly times: StoreTimes,
  ) {}

  @Get('deliveries')
  @RequiresOperation('listWebhookDeliveries')
  async list(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query() query: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const localization = this.pages.localize(request);
    const { t: translations, locale } = localization;
    const t = translations.webhookPages.deliveries;
    const timeZone = await this.times.getTimeZone(store.id);
    const fields = readDeliveryFields(query);
    const last = Number(query['before']);
    const before = Number.isSafeInteger(last) && last > 0 ? last : null;
    // One more tells whether there is another page.
    const rows = await this.deliveries.list(webhook.id, toDeliveryFilter(fields, timeZone), {
      after: before === null ? null : [before],
      limit: PAGE_SIZE + 1,
    });
    const rowsOfPage = rows.slice(0, PAGE_SIZE);
    const back = `${buildWebhooksPath(store)}/${webhook.id}`;
    const base = `${back}/deliveries`;
    const { minute } = createTimeFormats(locale, timeZone);
    const narrowed = Object.entries(fields).filter(([, value]) => value !== '');
    const link = (extra: [string, string][]) =>
      `${base}?${new URLSearchParams([...narrowed, ...extra]).toString()}`;
    await this.pages.send(request, reply, {
      view: listView,
      title: t.title,
      data: {
        base,
        back,
        about: webhook.target_url,
        fields,
        isNarrowed: narrowed.length > 0,
        statuses: STATUSES.map((value) => ({ value, text: t.statuses[value] })),
        events: listEventChoices(localization),
        lines: rowsOfPage.map((delivery) => toLine(delivery, base, localization, minute)),
        newest: before === null ? '' : link([]),
        older: rows.length > PAGE_SIZE ? link([['before', String(rowsOfPage.at(-1)?.id)]]) : '',
      },
    });
  }

  @Get('deliveries/:delivery_id')
  @RequiresOperation('getWebhookDelivery')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param() path: DeliveryParameters,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { t } = this.pages.localize(request);
    const notice = done === 'redelivered' ? t.webhookPages.done.redelivered : '';
    await this.sendDelivery(request, reply, store, path, { notice, error: '' });
  }

  @Post('deliveries/:delivery_id/redeliver')
  @RequiresOperation('redeliverWebhook')
  @TakesForm()
  @Throttle(30)
  async redeliver(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Param() path: DeliveryParameters,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const [id, deliveryId] = [parsePathId(path.id), parsePathId(path.delivery_id)];
    try {
      await this.forms.executeOnce({ userId, action: request.url, form }, (keyed) =>
        this.deliveries.redeliver({ ...context, keyed }, id, deliveryId),
      );
    } catch (error) {
      const { text } = toRefusal(error, this.pages.localize(request));
      return this.sendDelivery(request, reply, store, path, { notice: '', error: text });
    }
    const base = `${buildWebhooksPath(store)}/${id}/deliveries/${deliveryId}`;
    await this.pages.redirect(reply, `${base}?done=redelivered`);
  }

  @Get('replay')
  @RequiresOperation('replayWebhooks')
  async showReplay(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const timeZone = await this.times.getTimeZone(store.id);
    const from = renderLocalTime(new Date(getNowMs() - DAY_MS), timeZone);
    await this.sendReplay(request, reply, store, path, {
      values: { from, to: '', hasEveryEvent: true, events: [] },
      errors: NO_FORM_ERRORS,
      receipt: this.forms.createReceipt(),
    });
  }

  @Post('replay')
  @RequiresOperation('replayWebhooks')
  @TakesForm()
  @Throttle(30)
  async replay(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id } = await this.webhooks.get(store.id, parsePathId(path));
    const timeZone = await this.times.getTimeZone(store.id);
    const { from = '', to = '', receipt = '' } = form;
    const values = {
      from,
      to,
      hasEveryEvent: form['scope'] !== 'some',
      events: readChosen(form, 'event:'),
    };
    const toTime = (text: string) => parseLocalTime(text, timeZone)?.toISOString() ?? text;
    let replayed: ReplayJson;
    try {
      const body = readFields(ReplayDto, {
        from: toTime(from),
        to: to === '' ? null : toTime(to),
        types: values.hasEveryEvent ? null : values.events,
      });
      replayed = await this.forms.executeOnce({ userId, action: request.url, form }, (keyed) =>
        this.deliveries.replay({ ...context, keyed }, id, body),
      );
    } catch (error) {
      const errors = toRefusal(error, this.pages.localize(request));
      return this.sendReplay(request, reply, store, path, { values, errors, receipt });
    }
    await this.pages.redirect(
      reply,
      `${buildWebhooksPath(store)}/${id}?replayed=${replayed.matched}`,
    );
  }

  private async sendDelivery(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    path: DeliveryParameters,
    state: { notice: string; error: string },
  ): Promise<void> {
    const [id, deliveryId] = [parsePathId(path.id), parsePathId(path.delivery_id)];
    const delivery = await this.deliveries.get(store.id, id, deliveryId);
    const { enabled } = await this.webhooks.get(store.id, id);
    const localization = this.pages.localize(request);
    const { t, locale } = localization;
    const { minute } = await this.times.createFormats(store.id, locale);
    const toTime = (at: string | null) => (at === null ? '' : minute(new Date(at)));
    const list = `${buildWebhooksPath(store)}/${id}/deliveries`;
    await this.pages.send(request, reply, {
      view: detailView,
      title: t.webhookPages.delivery.title,
      status: state.error === '' ? 200 : 422,
      data: {
        base: `${list}/${deliveryId}`,
        list,
        event: renderEventName(delivery.type, localization),
        id: delivery.event_id,
        created: toTime(delivery.created_at),
        next: toTime(delivery.next_attempt_at),
        delivered: toTime(delivery.delivered_at),
        enabled,
        receipt: this.forms.createReceipt(),
        attempts: renderAttempts(delivery, localization, minute),
        ...describeDelivery(delivery, localization),
        ...state,
      },
    });
  }

  private async sendReplay(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    path: string,
    state: Pick<ReplayView, 'values' | 'errors' | 'receipt'>,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const localization = this.pages.localize(request);
    const t = localization.t.webhookPages.replay;
    const back = `${buildWebhooksPath(store)}/${webhook.id}`;
    await this.pages.send(request, reply, {
      view: replayView,
      title: t.title,
      width: 'form',
      status: state.errors === NO_FORM_ERRORS ? 200 : 422,
      data: {
        action: `${back}/replay`,
        back,
        about: webhook.target_url,
        zone: t.zone({ timeZone: await this.times.getTimeZone(store.id) }),
        events: listEventChoices(localization),
        ...state,
      },
    });
  }
}

/** Reads the filter; what the form cannot send narrows nothing. */
function readDeliveryFields(query: Record<string, unknown>): Fields {
  const read = (name: string) => {
    const value = query[name];
    return typeof value === 'string' ? value : '';
  };
  const [status, type, from, to] = [read('status'), read('type'), read('from'), read('to')];
  return {
    status: STATUSES.some((one) => one === status) ? status : '',
    type: PUBLIC_EVENTS.some((one) => one === type) ? type : '',
    from: isDay(from) ? from : '',
    to: isDay(to) ? to : '',
  };
}

function toDeliveryFilter({ status, type, from, to }: Fields, timeZone: string): DeliveryFilter {
  const toTime = (day: string, moment: 'start' | 'next') =>
    day === '' ? null : new Date(findMomentOfDay(day, moment, timeZone));
  return {
    status: STATUSES.find((one) => one === status) ?? null,
    type: type === '' ? null : (type as PublicEventType),
    from: toTime(from, 'start'),
    to: toTime(to, 'next'),
  };
}

function describeDelivery(
  { status }: Pick<DeliveryJson, 'status'>,
  { t: { webhookPages: t } }: Localization,
): WebhookState {
  return { state: t.deliveries.statuses[status], mood: MOODS[status] };
}

function toLine(
  delivery: DeliveryJson,
  base: string,
  localization: Localization,
  minute: (time: Date) => string,
): Line {
  return {
    path: `${base}/${delivery.id}`,
    event: renderEventName(delivery.type, localization),
    created: minute(new Date(delivery.created_at)),
    attempts: new Intl.NumberFormat(localization.locale).format(delivery.attempts_count),
    ...describeDelivery(delivery, localization),
  };
}
