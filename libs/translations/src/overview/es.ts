import type { Translations } from '../en.js';

export const overview: Translations['overview'] = {
  today: 'Hoy',
  allNumbers: 'Todas las cifras',
  waiting: 'Pendiente de usted',
  messages: (text, count) =>
    `${text} ${count === 1 ? 'mensaje no se ha enviado' : 'mensajes no se han enviado'}`,
  messagesWhy: 'Enlaces a tarjetas que los clientes no han recibido',
  rewards: (text, count) =>
    `${text} ${count === 1 ? 'premio se puede canjear' : 'premios se pueden canjear'}`,
  rewardsWhy: 'Los clientes pueden pedirlos en cualquier momento',
  imports: (text, count) =>
    `${text} ${count === 1 ? 'importación lista' : 'importaciones listas'} para empezar`,
  importsWhy: 'Ya comprobado, pero aún sin importar',
  setUp: 'Preparar su negocio',
  progress: (done, all) => `${done} de ${all}`,
  done: 'Hecho',
  steps: {
    card: {
      title: 'Crear su primera tarjeta',
      text: 'Elija los colores, los sellos y para qué sirven.',
    },
    reward: { title: 'Añadir un premio', text: 'Lo que los clientes reciben por sus sellos.' },
    logo: { title: 'Añadir su logotipo', text: 'Aparece en tarjetas, carteles y correos.' },
    location: {
      title: 'Añadir su primer local',
      text: 'Los teléfonos muestran la tarjeta cuando está cerca.',
    },
    poster: {
      title: 'Imprimir un cartel',
      text: 'Los clientes lo escanean y tienen la tarjeta en su teléfono.',
    },
    team: { title: 'Invitar a su equipo', text: 'Cada persona entra con su propio nombre.' },
    customer: {
      title: 'Recibir a su primer cliente',
      text: 'Con el cartel, en el mostrador o importando un archivo.',
    },
  },
  go: 'Ir',
  operator: 'Lo que puede añadir quien gestiona este servicio',
  operatorWhy: 'No puede hacerlo usted. Pregunte a quien gestiona Inkpad para usted.',
  services: {
    mail: 'Correo: los enlaces a tarjetas y contraseñas se envían por correo',
    sms: 'SMS: los enlaces a tarjetas se envían por SMS',
    apple: 'Apple Wallet: las tarjetas se añaden al iPhone',
    google: 'Google Wallet: las tarjetas se añaden a teléfonos Android',
  },
  serviceMissing: 'Sin configurar',
  pages: 'Todas las páginas',
  empty: 'Aquí no hay nada que gestionar',
  emptyWhy: 'Pida más permisos a un propietario del negocio.',
};
