import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Logger,
  Param,
  Post,
  Query,
  Res,
} from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Config } from '#configuration/config.js';
import { getNow } from '#platform/kernel/clock.js';
import { RejectedError, UnauthorizedError } from '#platform/kernel/errors.js';
import { AvailableWhen } from '#platform/http/route-access.js';
import { Throttle } from '#platform/http/throttle.js';
import type { CustomerCard } from '#loyalty/stamping/customer-card.js';
import { parseTag } from '#outbound/passes/pass-tag.js';
import { Passes } from '#outbound/passes/passes.service.js';
import { AppleDevices } from './apple-devices.service.js';
import { ApplePasses } from './apple-passes.service.js';
import { parsePhoneLog, isUnchanged, getLastModifiedMs, parsePushToken } from './passkit.js';
import { ISSUES } from '#translations/issues.js';

const REGISTRATIONS = 'devices/:device/registrations/:pass_type';

const WithApple = () => AvailableWhen(({ apple }: Config) => apple !== null);

type PassPath = { device: string; pass_type: string; serial: string };

/**
 * Implements the web service that iPhones call (Apple: "Adding a Web Service to Update Passes"). Apple defines its
 * paths and responses, so they are not part of the API and its OpenAPI document.
 */
@Controller('wallet/apple/v1')
export class PasskitController {
  private readonly log = new Logger('apple phones');

  constructor(
    private readonly config: Config,
    private readonly passes: Passes,
    private readonly applePasses: ApplePasses,
    private readonly devices: AppleDevices,
  ) {}

  @WithApple()
  @Post(`${REGISTRATIONS}/:serial`)
  async register(
    @Param() path: PassPath,
    @Headers('authorization') authorization: string | undefined,
    @Body() body: unknown,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const customerCard = await this.authenticate(path, authorization);
    const pushToken = parsePushToken(body);
    if (pushToken === undefined) {
      throw new RejectedError({ pushToken: [ISSUES.push_token_invalid] });
    }
    const isNew = await this.devices.register(toDeviceKey(path), pushToken, customerCard);
    await reply.status(isNew ? 201 : 200).send();
  }

  /** Lists the changed passes of a device. The device authenticates with nothing but its identifier. */
  @WithApple()
  @Get(REGISTRATIONS)
  async listChanged(
    @Param() path: Omit<PassPath, 'serial'>,
    @Query('passesUpdatedSince') since: unknown,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const issuedTag = await this.passes.findIssuedTag(parseTag(since));
    const { serials, tag } = await this.devices.findChangedPasses(toDeviceKey(path), issuedTag);
    reply.header('cache-control', 'no-store');
    if (serials.length === 0) await reply.status(204).send();
    else await reply.send({ serialNumbers: serials, lastUpdated: String(tag) });
  }

  @WithApple()
  @Get('passes/:pass_type/:serial')
  async getNewest(
    @Param() path: Omit<PassPath, 'device'>,
    @Headers('authorization') authorization: string | undefined,
    @Headers('if-modified-since') since: string | undefined,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const customerCard = await this.authenticate(path, authorization);
    const { id, accountId } = customerCard;
    reply.header('cache-control', 'no-store');
    const existing = await this.passes.find(id);
    if (existing && isUnchanged(existing, since)) {
      await this.passes.markSynced(id, accountId, 'apple');
      await reply.status(304).send();
      return;
    }
    const { bytes, pass } = await this.applePasses.issue(customerCard);
    reply.header('last-modified', new Date(getLastModifiedMs(pass, getNow())).toUTCString());
    await this.passes.markSynced(id, accountId, 'apple');
    await reply.type('application/vnd.apple.pkpass').send(bytes);
  }

  @WithApple()
  @Delete(`${REGISTRATIONS}/:serial`)
  @HttpCode(200)
  async unregister(
    @Param() path: PassPath,
    @Headers('authorization') authorization: string | undefined,
  ): Promise<void> {
    const { id } = await this.authenticate(path, authorization);
    await this.devices.unregister(toDeviceKey(path), id);
  }

  /**
   * Logs errors that phones report, often the only sign of a wrong certificate. The request is not authenticated, so
   * only lines that name a registered device or pass are logged.
   */
  @WithApple()
  @Post('log')
  @HttpCode(200)
  @Throttle(30)
  async receiveLog(@Body() body: unknown): Promise<void> {
    const lines = parsePhoneLog(body);
    const registeredIdentifiers = await this.devices.findRegistered(
      lines.flatMap(({ identifiers }) => identifiers),
    );
    for (const { identifiers, text } of lines) {
      if (identifiers.some((identifier) => registeredIdentifiers.has(identifier)))
        this.log.warn(text);
    }
  }

  /** Finds the customer card whose token a request has. @throws UnauthorizedError */
  private async authenticate(
    { pass_type: passType, serial }: Omit<PassPath, 'device'>,
    authorization: string | undefined,
  ): Promise<CustomerCard> {
    const token = /^ApplePass +(\S+) *$/i.exec(authorization ?? '')?.[1];
    const isOurPassType = passType === this.config.apple?.passTypeId;
    if (token === undefined || !isOurPassType || !this.applePasses.isValidToken(serial, token)) {
      throw new UnauthorizedError();
    }
    const customerCard = await this.passes.findHolder(serial);
    if (!customerCard) throw new UnauthorizedError();
    return customerCard;
  }
}

function toDeviceKey({ device, pass_type: passTypeId }: Omit<PassPath, 'serial'>) {
  return { libraryId: device, passTypeId };
}
