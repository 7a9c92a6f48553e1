import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Protocol = 'nominatim' | 'photon' | 'pelias';

/** How exactly the emulator knows a place. */
export type KnownPlace = {
  latitude: number;
  longitude: number;
  as: 'house' | 'street' | 'postcode' | 'city' | 'country';
  houseNumber?: string;
};

type Fault = { status: number; headers?: Record<string, string>; body?: string } | 'silence';

/** Node's and undici's own names: public servers refuse them. */
const ANONYMOUS = /^(node|undici|$)/;
const ALLOWED: Record<Protocol, string[]> = {
  nominatim: ['q', 'format', 'limit', 'key'],
  photon: ['q', 'limit', 'lang', 'lat', 'lon', 'layer', 'key'],
  pelias: ['text', 'size', 'layers', 'api_key'],
};
const PATHS: Record<Protocol, string> = {
  nominatim: '/search',
  photon: '/api',
  pelias: '/v1/search',
};

/**
 * An emulator of a geocoding server, which refuses what the real one refuses: other paths and parameters, callers
 * without a name or key, and requests that come too fast or at the same time.
 */
export class GeocoderEmulator {
  readonly places = new Map<string, KnownPlace>();
  /** The received requests with their times. */
  readonly requests: { address: string; at: number; userAgent: string }[] = [];
  /** Broken rules. */
  readonly refused: string[] = [];
  /** The next responses, instead of results. */
  readonly faults: Fault[] = [];
  /** Called before each response. */
  onRequest: (address: string) => Promise<void> = async () => undefined;
  private open = 0;

  private constructor(
    readonly protocol: Protocol,
    /** 0: unlimited. */
    private readonly perSecond: number,
    private readonly server: Server,
  ) {}

  static async start(protocol: Protocol, perSecond = 0): Promise<GeocoderEmulator> {
    const server = createServer();
    const emulator = new GeocoderEmulator(protocol, perSecond, server);
    server.on('request', (request, response) => void emulator.respond(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return emulator;
  }

  get settings(): NodeJS.ProcessEnv {
    const { port } = this.server.address() as AddressInfo;
    return {
      GEOCODER: this.protocol,
      GEOCODER_URL: `http://127.0.0.1:${port}`,
      GEOCODER_CONTACT: 'maps@shop.example',
      GEOCODER_REQUESTS_PER_SECOND: String(this.perSecond || 1000),
      ...(this.protocol === 'pelias' && { GEOCODER_KEY: 'pelias-key' }),
    };
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open += 1;
    response.on('close', () => (this.open -= 1));
    const url = new URL(request.url ?? '', 'http://localhost');
    const address = url.searchParams.get(this.protocol === 'pelias' ? 'text' : 'q') ?? '';
    const userAgent = request.headers['user-agent'] ?? '';
    const error = this.findError(url, address, userAgent);
    this.requests.push({ address, at: Date.now(), userAgent });
    if (error) {
      this.refused.push(error.why);
      send(response, error.status, JSON.stringify({ error: error.why }));
      return;
    }
    await this.onRequest(address);
    const fault = this.faults.shift();
    if (fault === 'silence') return;
    if (fault) send(response, fault.status, fault.body ?? '', fault.headers);
    else send(response, 200, JSON.stringify(this.bodyFor(this.places.get(address))));
  }

  private findError(
    url: URL,
    address: string,
    userAgent: string,
  ): { status: number; why: string } | undefined {
    if (url.pathname !== PATHS[this.protocol]) return { status: 404, why: 'path' };
    const unknown = [...url.searchParams.keys()].find(
      (name) => !ALLOWED[this.protocol].includes(name),
    );
    if (unknown !== undefined) return { status: 400, why: `parameter ${unknown}` };
    if (address === '') return { status: 400, why: 'no address' };
    if (ANONYMOUS.test(userAgent) || !userAgent.includes('@')) {
      return { status: 403, why: 'no contact' };
    }
    if (this.protocol === 'nominatim' && url.searchParams.get('format') !== 'jsonv2') {
      return { status: 400, why: 'format' };
    }
    if (this.protocol === 'pelias' && url.searchParams.get('api_key') !== 'pelias-key') {
      return { status: 401, why: 'key' };
    }
    const last = this.requests.at(-1)?.at ?? 0;
    // On a busy machine a request may arrive late, and the next one then seems to be early.
    const tooFast = this.perSecond > 0 && Date.now() - last < 200 / this.perSecond;
    return tooFast || this.open > 1 ? { status: 429, why: 'too fast' } : undefined;
  }

  private bodyFor(place: KnownPlace | undefined): unknown {
    if (this.protocol === 'nominatim') return place ? [nominatimPlace(place)] : [];
    const features = place ? [feature(this.protocol, place)] : [];
    return { type: 'FeatureCollection', features };
  }
}

function nominatimPlace({ latitude, longitude, as, houseNumber = '1' }: KnownPlace): object {
  const ranks = { house: 30, street: 26, postcode: 21, city: 16, country: 4 };
  return {
    place_id: 1,
    licence: 'Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright',
    lat: String(latitude),
    lon: String(longitude),
    place_rank: ranks[as],
    addresstype: as === 'house' ? 'place' : as,
    display_name: as === 'house' ? `${houseNumber}, Marktplatz, Hamburg` : 'Hamburg',
  };
}

function feature(protocol: Protocol, place: KnownPlace): object {
  const { latitude, longitude, as, houseNumber: housenumber = '1' } = place;
  const ofPhoton =
    as === 'postcode'
      ? { type: 'other', osm_key: 'place', osm_value: 'postcode' }
      : { type: as, ...(as === 'house' && { housenumber }) };
  const layers = {
    house: 'address',
    street: 'street',
    postcode: 'postalcode',
    city: 'locality',
    country: 'country',
  };
  const ofPelias = {
    layer: layers[as],
    match_type: 'exact',
    accuracy: as === 'house' ? 'point' : 'centroid',
    confidence: 1,
    ...(as === 'house' && { housenumber }),
  };
  return {
    type: 'Feature',
    geometry: { type: 'Point', coordinates: [longitude, latitude] },
    properties: protocol === 'photon' ? ofPhoton : ofPelias,
  };
}

function send(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}
