import { Body, Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { getNowMs } from '#kernel/clock.js';
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
import { NO_FORM_ERRORS, toRefusal } from '#pages/form-errors.js';
import { Reauthentication } from '#sign-in/reauthentication.service.js';
import { RotateWebhookSecret } from '#subscriptions/webhook-subscription.commands.js';
import {
  RotateSecretDto,
  type WebhookSubscriptionSecretJson,
} from '#subscriptions/webhook-subscription.dto.js';
import { WebhookSubscriptionsService } from '#subscriptions/webhook-subscriptions.service.js';
import { WebhookViews } from './webhook-views.service.js';

/** Serves the page that changes the signing secret of a webhook, which it shows once. */
@Controller('app/stores/:account_id/webhooks/:id/rotate')
export class WebhookSecretsPageController {
  constructor(
    private readonly pages: Pages,
    private readonly forms: SubmittedForms,
    private readonly commands: CommandBus,
    private readonly webhooks: WebhookSubscriptionsService,
    private readonly views: WebhookViews,
    private readonly reauthentication: Reauthentication,
  ) {}

  @Get()
  @RequiresOperation('rotateWebhookSecret')
  async askToRotate(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    await this.views.sendRotation(request, reply, store, webhook, NO_FORM_ERRORS);
  }

  @Post()
  @RequiresOperation('rotateWebhookSecret')
  @TakesForm()
  @Throttle(30)
  async rotate(
    @ConsoleContext() context: CommandContext,
    @CurrentStore() store: EnteredStore,
    @CurrentUser() user: SignedInUser,
    @Param('id') path: string,
    @Body() form: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const webhook = await this.webhooks.get(store.id, parsePathId(path));
    let rotated: WebhookSubscriptionSecretJson;
    let grace: number;
    try {
      const body = readFields(RotateSecretDto, {
        grace_seconds: form['grace_seconds'],
        signature: form['signature'],
      });
      grace = body.grace_seconds;
      const field = 'current_password';
      await this.reauthentication.assertPassword(user, form[field], field, request);
      const submitted = { userId: user.userId, action: request.url, form };
      rotated = await this.forms.executeOnce(submitted, (keyed) =>
        this.commands.execute(
          new RotateWebhookSecret({ ...context, keyed }, webhook.id, grace, body.signature),
        ),
      );
    } catch (error) {
      const errors = toRefusal(error, this.pages.localize(request));
      return this.views.sendRotation(request, reply, store, webhook, errors);
    }
    const until = grace === 0 ? null : new Date(getNowMs() + grace * 1_000);
    await this.views.sendSecret(request, reply, store, rotated, until);
  }
}
