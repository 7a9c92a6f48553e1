import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
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
import { Pages } from '#pages/pages.service.js';
import { SubmittedForms } from '#pages/submitted-forms.service.js';
import { loadView } from '#pages/view.js';
import { StoreTimes } from '#pages/store-times.service.js';
import { NO_FORM_ERRORS, toRefusal } from '#pages/form-errors.js';
import { Reauthentication } from '#sign-in/reauthentication.service.js';
import {
  CreateWebhookSubscription,
  DeleteWebhookSubscription,
  UpdateWebhookSubscription,
} from '#subscriptions/webhook-subscription.commands.js';
import {
  CreateWebhookSubscriptionDto,
  toSubscriptionAttributes,
  toSubscriptionChanges,
  UpdateWebhookSubscriptionDto,
  type WebhookSubscriptionSecretJson,
  type WebhookTestJson,
} from '#subscriptions/webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from '#subscriptions/webhook-subscriptions.service.js';
import { TestWebhookSubscription } from '#subscriptions/webhook-test.commands.js';
import {
  NO_WEBHOOK_FIELDS,
  readWebhookFields,
  toWebhookBody,
  toWebhookFields,
} from './webhook-form.js';
import {
  buildWebhooksPath,
  describeWebhookState,
  renderEventCount,
  renderLast,
  type WebhookState,
} from './webhook-labels.js';
import { WebhookViews, type WebhookNotice } from './webhook-views.service.js';

type Line = WebhookState & {
  path: string;
  name: string;
  url: string;
  events: string;
  last: string;
};

type ListView = { base: string; lines: Line[]; next: string; first: string; done: string };

type EnableView = { base: string; about: string; since: string };
const listView = loadView<ListView>(import.meta.url, './views/webhooks.eta');
const enableView = loadView<EnableView>(import.meta.url, './views/enable.eta');

const PAGE_SIZE = 50;

/** Serves the webhooks of a store: list, make, test, pause and delete them. */
@Controller('app/stores/:account_id/webhooks')
export class WebhooksController {
  constructor(
    private readonly pages: Pages,
    private readonly forms: SubmittedForms,
    private readonly commands: CommandBus,
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly views: WebhookViews,
    private readonly times: StoreTimes,
    private readonly reauthentication: Reauthentication,
  ) {}

  @Get()
  @RequiresOperation('listWebhookSubscriptions')
  async list(
    @CurrentStore() store: EnteredStore,
    @Query() query: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const localization = this.pages.localize(request);
    const t = localization.t.webhookPages;
    const after = /^[1-9]\d{0,14}$/.test(String(query['after'])) ? Number(query['after']) : null;
    // One more tells whether there is another page.
    const rows = await this.webhooks.list(store.id, null, {
      after: after === null ? null : [after],
      limit: PAGE_SIZE + 1,
    });
    const rowsOfPage = rows.slice(0, PAGE_SIZE);
    const base = buildWebhooksPath(store);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    await this.pages.send(request, reply, {
      view: listView,
      title: t.list.title,
      data: {
        base,
        lines: rowsOfPage.map((webhook) => ({
          path: `${base}/${webhook.id}`,
          name: webhook.description ?? new URL(webhook.target_url).hostname,
          url: webhook.target_url,
          events: renderEventCount(webhook, localization),
          last: renderLast(webhook, localization, minute),
          ...describeWebhookState(webhook, localization),
        })),
        next: rows.length > PAGE_SIZE ? `${base}?after=${rowsOfPage.at(-1)?.id}` : '',
        first: after === null ? '' : base,
        done: query['done'] === 'deleted' ? t.done.deleted : '',
      },
    });
  }

  @Get('new')
  @RequiresOperation('createWebhookSubscription')
  async showCreation(
    @CurrentStore() store: EnteredStore,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.views.sendForm(request, reply, store, null, {
      values: NO_WEBHOOK_FIELDS,
      errors: NO_FORM_ERRORS,
      receipt: this.forms.createReceipt(),
    });
  }

  @Post()
  @RequiresOperation('createWebhookSubscription')
  @TakesForm()
  @Throttle(30)
  async create(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const values = readWebhookFields(form);
    let created: WebhookSubscriptionSecretJson;
    try {
      const body = readFields(CreateWebhookSubscriptionDto, {
        ...toWebhookBody(values),
        signature: values.signature,
      });
      await this.assertPassword(user, form, request);
      created = await this.forms.executeOnce(
        { userId: user.userId, action: buildWebhooksPath(store), form },
        (keyed) =>
          this.commands.execute(
            new CreateWebhookSubscription({ ...context, keyed }, toSubscriptionAttributes(body)),
          ),
      );
    } catch (error) {
      const errors = toRefusal(error, this.pages.localize(request));
      const receipt = form['receipt'] ?? '';
      return this.views.sendForm(request, reply, store, null, { values, errors, receipt });
    }
    await this.views.sendSecret(request, reply, store, created, null);
  }

  @Get(':id')
  @RequiresOperation('getWebhookSubscription')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Query() query: Record<string, unknown>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    await this.views.sendPage(request, reply, store, webhook, { query, error: '' });
  }

  @Get(':id/edit')
  @RequiresOperation('updateWebhookSubscription')
  async showForm(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    await this.views.sendForm(request, reply, store, webhook.id, {
      values: toWebhookFields(webhook),
      errors: NO_FORM_ERRORS,
      receipt: '',
    });
  }

  @Post(':id/edit')
  @RequiresOperation('updateWebhookSubscription')
  @TakesForm()
  @Throttle(30)
  async update(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const values = readWebhookFields(form);
    try {
      const body = readFields(UpdateWebhookSubscriptionDto, toWebhookBody(values));
      await this.assertPassword(user, form, request);
      await this.commands.execute(
        new UpdateWebhookSubscription(context, webhook.id, toSubscriptionChanges(body), false),
      );
    } catch (error) {
      const errors = toRefusal(error, this.pages.localize(request));
      return this.views.sendForm(request, reply, store, webhook.id, {
        values,
        errors,
        receipt: '',
      });
    }
    await this.redirect(reply, store, webhook.id, 'saved');
  }

  @Post(':id/pause')
  @RequiresOperation('updateWebhookSubscription')
  @TakesForm()
  @Throttle(30)
  async pause(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.commands.execute(
      new UpdateWebhookSubscription(context, id, { enabled: false }, false),
    );
    await this.redirect(reply, store, id, 'paused');
  }

  @Get(':id/enable')
  @RequiresOperation('updateWebhookSubscription')
  async askToEnable(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const localization = this.pages.localize(request);
    const { minute } = await this.times.createFormats(store.id, localization.locale);
    const { disabled_at: disabledAt } = webhook;
    await this.pages.send(request, reply, {
      view: enableView,
      title: localization.t.webhookPages.enable.title,
      width: 'form',
      data: {
        base: `${buildWebhooksPath(store)}/${webhook.id}`,
        about: webhook.target_url,
        since: disabledAt === null ? '' : minute(new Date(disabledAt)),
      },
    });
  }

  @Post(':id/enable')
  @RequiresOperation('updateWebhookSubscription')
  @TakesForm()
  @Throttle(30)
  async enable(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    const replaysMissed = form['replay_missed'] === 'yes';
    try {
      await this.commands.execute(
        new UpdateWebhookSubscription(context, id, { enabled: true }, replaysMissed),
      );
    } catch (error) {
      return this.views.sendRefusal(request, reply, store, id, error);
    }
    await this.redirect(reply, store, id, replaysMissed ? 'enabledMissed' : 'enabled');
  }

  @Post(':id/test')
  @RequiresOperation('testWebhookSubscription')
  @TakesForm()
  @Throttle(30)
  async test(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    let result: WebhookTestJson;
    try {
      result = await this.forms.executeOnce({ userId, action: request.url, form }, () =>
        this.commands.execute(new TestWebhookSubscription(context, id)),
      );
    } catch (error) {
      return this.views.sendRefusal(request, reply, store, id, error);
    }
    await this.redirect(reply, store, id, result.delivered ? 'tested' : 'testFailed');
  }

  @Get(':id/delete')
  @RequiresOperation('deleteWebhookSubscription')
  async askToDelete(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    const { title, text, yes, no } = this.pages.localize(request).t.webhookPages.delete;
    const base = `${buildWebhooksPath(store)}/${webhook.id}`;
    await this.pages.sendConfirmation(request, reply, {
      question: title,
      about: webhook.target_url,
      text,
      yes,
      no,
      action: `${base}/delete`,
      fields: { receipt: this.forms.createReceipt() },
      back: base,
    });
  }

  @Post(':id/delete')
  @RequiresOperation('deleteWebhookSubscription')
  @TakesForm()
  @Throttle(30)
  async remove(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() { userId }: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    await this.forms.executeOnce({ userId, action: request.url, form }, (keyed) =>
      this.commands.execute(
        new DeleteWebhookSubscription({ ...context, keyed }, parsePathId(path)),
      ),
    );
    await this.pages.redirect(reply, `${buildWebhooksPath(store)}?done=deleted`);
  }

  /** Asserts the password: whoever sets a webhook's address receives what happens in the store from then on. */
  private assertPassword(user: SignedInUser, form: Form, request: FastifyRequest): Promise<void> {
    const field = 'current_password';
    return this.reauthentication.assertPassword(user, form[field], field, request);
  }

  private redirect(
    reply: FastifyReply,
    store: EnteredStore,
    id: number,
    done: WebhookNotice,
  ): Promise<void> {
    return this.pages.redirect(reply, `${buildWebhooksPath(store)}/${id}?done=${done}`);
  }
}
