import { Body, Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CommandContext } from '#kernel/aggregate.js';
import { Config } from '#configuration/config.js';
import { TakesForm, type Form } from '#http/form-bodies.js';
import { parsePathId } from '#http/path.js';
import { UpdateLocation } from '#locations/location.commands.js';
import type { Location } from '#locations/location.js';
import { LocationsService } from '#locations/locations.service.js';
import { loadAsset } from '#pages/assets.js';
import {
  ConsoleContext,
  CurrentStore,
  RequiresOperation,
  type EnteredStore,
} from '#pages/current-user.js';
import { Pages } from '#pages/pages.service.js';
import { loadView } from '#pages/view.js';
import {
  describeAction,
  getAttribution,
  isExact,
  toLocationLine,
  buildMapUrl,
  describeState,
  type LocationListData,
  type PinData,
} from './location-page.js';
import { parseCoordinates } from './coordinates.js';

const listView = loadView<LocationListData>(import.meta.url, './views/locations.eta');
const pinView = loadView<PinData>(import.meta.url, './views/pin.eta');
const SCRIPT = loadAsset(import.meta.url, './assets/pin.js');
const DONE: Record<string, string> = { pinned: 'The pin is set.', removed: 'The pin is removed.' };
const NO_PLACE = 'Please enter two numbers such as 53.5503 and 9.9929, or paste the link of a map';

/** Serves the pages that show and pin the locations of a store. */
@Controller('app/stores/:account_id/locations')
export class LocationPagesController {
  constructor(
    private readonly pages: Pages,
    private readonly locations: LocationsService,
    private readonly commands: CommandBus,
    private readonly config: Config,
  ) {}

  @Get()
  @RequiresOperation('listLocations')
  async list(
    @CurrentStore() store: EnteredStore,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const all = await this.locations.listStates(store.id);
    const lines = all.map((location) => toLocationLine(location, buildLocationsPath(store)));
    const data = { lines, credit: getAttribution(this.config.geocoder) };
    await this.pages.send(request, reply, { view: listView, title: 'Locations', data });
  }

  @Get(':id')
  @RequiresOperation('locations.pin')
  async show(
    @CurrentStore() store: EnteredStore,
    @Param('id') id: string,
    @Query('done') done: unknown,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const location = await this.locations.getState(store.id, parsePathId(id));
    const notice = typeof done === 'string' && Object.hasOwn(DONE, done) ? (DONE[done] ?? '') : '';
    await this.sendPinPage(request, reply, store, location, { done: notice });
  }

  @Post(':id/pin')
  @TakesForm()
  @RequiresOperation('locations.pin')
  async pin(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Body() { latitude = '', longitude = '' }: Form,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const location = await this.locations.getState(store.id, parsePathId(path));
    const pin = parseCoordinates(latitude, longitude);
    if (!pin) {
      const typed = { latitude, longitude, errors: [NO_PLACE], status: 422 };
      await this.sendPinPage(request, reply, store, location, typed);
      return;
    }
    await this.commands.execute(new UpdateLocation(context, location.id, { pin }));
    await this.pages.redirect(reply, `${buildLocationsPath(store)}/${location.id}?done=pinned`);
  }

  @Get(':id/unpin')
  @RequiresOperation('locations.pin')
  async askToUnpin(
    @CurrentStore() store: EnteredStore,
    @Param('id') path: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { id, name, address } = await this.locations.getState(store.id, parsePathId(path));
    await this.pages.sendConfirmation(request, reply, {
      question: 'Remove this pin?',
      about: `${name}, ${address}`,
      text: 'The address is looked up again. If only its town is found, phones no longer show cards near the shop.',
      yes: 'Remove the pin',
      no: 'Keep it',
      action: `${buildLocationsPath(store)}/${id}/unpin`,
      back: `${buildLocationsPath(store)}/${id}`,
    });
  }

  @Post(':id/unpin')
  @TakesForm()
  @RequiresOperation('locations.pin')
  async unpin(
    @CurrentStore() store: EnteredStore,
    @ConsoleContext() context: CommandContext,
    @Param('id') path: string,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const id = parsePathId(path);
    await this.commands.execute(new UpdateLocation(context, id, { pin: null }));
    await this.pages.redirect(reply, `${buildLocationsPath(store)}/${id}?done=removed`);
  }

  private async sendPinPage(
    request: FastifyRequest,
    reply: FastifyReply,
    store: EnteredStore,
    location: Location,
    { status = 200, ...overrides }: Partial<PinData> & { status?: number },
  ): Promise<void> {
    const path = `${buildLocationsPath(store)}/${location.id}`;
    const { name, address, precision } = location;
    await this.pages.send(request, reply, {
      view: pinView,
      title: name,
      width: 'form',
      status,
      scripts: [SCRIPT],
      data: {
        ...describeState(location),
        name,
        address,
        latitude: isExact(location) ? String(location.latitude) : '',
        longitude: isExact(location) ? String(location.longitude) : '',
        errors: [],
        isPinned: precision === 'manual',
        action: describeAction(location),
        map: buildMapUrl(location),
        save: `${path}/pin`,
        remove: `${path}/unpin`,
        back: buildLocationsPath(store),
        done: '',
        ...overrides,
      },
    });
  }
}

function buildLocationsPath({ id }: EnteredStore): string {
  return `/app/stores/${id}/locations`;
}
